"""Read mails and mailboxes: what is written and, below a heading with its name, the text of each document attached."""

from __future__ import annotations

import email
import email.policy
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import Any, TypeAlias

from msgspec.structs import replace

from rag_assistant.extraction.formats.converted import read_converted
from rag_assistant.extraction.formats.kinds import EML, MBOX, media_type_of
from rag_assistant.extraction.formats.markup import heading, joined
from rag_assistant.extraction.formats.texts import clean, decoded
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

log = logging.getLogger(__name__)

Read: TypeAlias = Callable[[bytes, str], ExtractedText]

BYTES_TO_RECOGNISE = 4096
MAX_NAMED = 3
MAX_NAME_CHARS = 200
# They vouch for a mail, and say nothing themselves.
SIGNATURES = ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
UNNAMED = "without a name"
# The properties of an attachment in Outlook's format: its data, and its names from the best to the last.
MSG_ATTACHMENT = "__attach_version1.0_#"
MSG_DATA = "37010102"
MSG_NAMES = (("3707001F", "utf-16-le"), ("3707001E", "cp1252"), ("3704001F", "utf-16-le"), ("3001001F", "utf-16-le"))
# Where a mail begins in a mailbox, and what stands for such a line within a mail (RFC 4155).
FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.M)
FIRST_FIELD = re.compile(r"\*\*(?:Subject|From)\*\*: (.+)")
HEADING_OR_CODE = re.compile(r"^```.*?^```[^\n]*$|^#{1,5}(?= )", re.M | re.S)


def read_mail(content: bytes, media_type: str, read: Read) -> ExtractedText:
    """Return the text of a mail and of what is attached to it as Markdown. Raises ExtractionFailed.

    ``read`` reads an attachment of a kind. What it cannot read is named in the warning.
    """
    if media_type == EML and b"\0" in content[:100]:
        content = decoded(content).encode()
    mail = read_converted(content, media_type)
    attachments, whole = _attachments(content, media_type)
    blocks, warnings, unread = [mail.text], [mail.warning], []
    for given, attached in attachments:
        name = _readable(given)
        try:
            extracted = read(attached, media_type_of(attached[:BYTES_TO_RECOGNISE], name))
        except (ExtractionFailed, UnsupportedDocument):
            unread.append(name)
            continue
        if extracted.text.strip():
            blocks += [heading(1, f"Attachment: {name}"), _below(extracted)]
            warnings.append(extracted.warning and f"{name}: {extracted.warning}")
        if extracted.scans or not extracted.text.strip():
            unread.append(name)
    if unread:
        names = ", ".join(unread[:MAX_NAMED])
        if len(unread) > MAX_NAMED:
            names += f" and {len(unread) - MAX_NAMED} more"
        warnings.append(f"Attachments that were not read, or only in part: {names}. Add them separately.")
    if not whole:
        warnings.append("This mail is damaged: not all of its attachments could be found.")
    return replace(mail, text=joined(blocks), warning=" ".join(filter(None, warnings)) or None)


def read_mailbox(content: bytes, read: Read) -> ExtractedText:
    """Return the text of each mail of a mailbox, below a heading with its subject. Raises ExtractionFailed."""
    mails = [QUOTED_FROM.sub(b"", mail) for mail in FROM_LINE.split(content) if mail.strip()]
    if len(mails) == 1:
        return replace(read(mails[0], EML), media_type=MBOX)
    blocks, not_whole = list[str](), 0
    for mail in mails:
        try:
            extracted = read(mail, EML)
        except ExtractionFailed:
            not_whole += 1
            continue
        subject = FIRST_FIELD.match(extracted.text)
        blocks += [heading(1, subject[1] if subject else "Mail"), _below(extracted)]
        not_whole += extracted.warning is not None
    if not blocks:
        raise ExtractionFailed("None of the mails in this mailbox can be read.")
    warning = f"{not_whole} of {len(mails)} mails could not be read, or not all that is attached to them."
    return ExtractedText(joined(blocks), MBOX, markdown=True, warning=warning if not_whole else None)


def _attachments(content: bytes, media_type: str) -> tuple[list[tuple[str, bytes]], bool]:
    """Return the name and the content of each attachment that could be found, and whether these are all."""
    attachments: list[tuple[str, bytes]] = []
    try:
        attachments.extend(_attached_to_eml(content) if media_type == EML else _attached_to_msg(content))
    except MemoryError:
        raise
    except Exception:
        # Both libraries raise whatever comes of a damaged mail: OSError, RecursionError, ValueError, AttributeError.
        log.info("Not all attachments of a mail could be found", exc_info=True)
        return attachments, False
    return attachments, True


def _readable(name: str) -> str:
    """Return a name as it can be shown; mails may name an attachment in any bytes."""
    return " ".join(clean(name).split())[:MAX_NAME_CHARS] or UNNAMED


def _attached_to_eml(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what is attached; of a mail that is forwarded in this one, too, whose text is part of this one's."""
    for part in email.message_from_bytes(content, policy=email.policy.default).walk():
        is_text = part.get_content_maintype() == "text"
        if part.is_multipart() or part.get_content_type() in SIGNATURES:
            continue
        if not is_text or part.get_content_disposition() == "attachment":
            payload, charset = part.get_payload(decode=True), part.get_content_charset()
            attached = payload if isinstance(payload, bytes) else b""
            if is_text and charset is not None:
                with suppress(LookupError):
                    attached = attached.decode(charset, "replace").encode()
            yield part.get_filename() or "", attached


def _attached_to_msg(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what is attached, but nothing for the data of a mail that is attached as one."""
    import olefile

    with olefile.OleFileIO(BytesIO(content)) as file:
        for folder, *inner in file.listdir(streams=False, storages=True):
            if folder.startswith(MSG_ATTACHMENT) and not inner:
                names = (_property(file, folder, which).decode(encoding, "replace") for which, encoding in MSG_NAMES)
                yield next(filter(None, names), ""), _property(file, folder, MSG_DATA)


def _property(file: Any, folder: str, which: str) -> bytes:
    """Return a property of an attachment, nothing where it has none."""
    path = [folder, f"__substg1.0_{which}"]
    return bytes(file.openstream(path).read()) if file.exists(path) else b""


def _below(found: ExtractedText) -> str:
    """Return a text whose headings are below that of its attachment; what is no Markdown has none."""
    mark = "#" if found.markdown else "\\"
    return HEADING_OR_CODE.sub(lambda one: one[0] if one[0].startswith("`") else mark + one[0], found.text)
