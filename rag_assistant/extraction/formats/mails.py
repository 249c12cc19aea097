"""Read mails and mailboxes: their text and, below a heading with its name, each attachment's.

If a text comes both as plain text and as HTML, one is read. Web pages saved as MHTML are mails, too.
"""

import email
import email.policy
import logging
import re
from email.header import decode_header, make_header
from email.message import Message
from io import BytesIO
from typing import Any, cast

from msgspec.structs import replace

from rag_assistant.extraction.formats.attachments import UNNAMED, Attachments, Read, below, read_attachments
from rag_assistant.extraction.formats.converted import read_converted
from rag_assistant.extraction.formats.kinds import EML, HTML, MBOX, MSG, PLAIN
from rag_assistant.extraction.formats.markup import heading, joined
from rag_assistant.extraction.formats.texts import clean, decoded, decoded_as
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

log = logging.getLogger(__name__)

# Signatures have no content of their own.
SIGNATURES = ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
# Properties of attachments in Outlook's format: the data, and the names in order of preference.
MSG_ATTACHMENT = "__attach_version1.0_#"
MSG_DATA = "37010102"
# Those of the mail's own text: plain, as a page, as compressed RTF.
MSG_PLAIN, MSG_PAGE, MSG_RTF = (("1000001F", "utf-16-le"), ("1000001E", "cp1252")), "10130102", "10090102"
RTF_NOT_READ = "The text of this email is only in Outlook's RTF, which is not read. Save the email as HTML and add it."
MSG_NAMES = (("3707001F", "utf-16-le"), ("3707001E", "cp1252"), ("3704001F", "utf-16-le"), ("3001001F", "utf-16-le"))
# Where a mail begins in a mailbox, and the escape of such a line within a mail (RFC 4155).
FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.M)
# A boundary without the quotes that its characters need.
BARE_BOUNDARY = re.compile(rb"^((?:content-type:|[ \t])[^\n\"]{0,200}\bboundary=)([^\s;\"]+)", re.I | re.M)
FIELDS = ("Subject", "From", "To", "Cc", "Date")
# Plain text beside HTML is read if it is at least this long, relatively; a shorter one only points to the HTML.
MIN_SHARE_OF_PAGE = 0.8
FIRST_FIELD = re.compile(r"\*\*(?:Subject|From)\*\*: (.+)")


def read_mail(content: bytes, media_type: str, read: Read) -> ExtractedText:
    """Return the text of a mail and its attachments as Markdown. Raises ExtractionFailed.

    ``read`` reads an attachment of a kind. Unreadable ones are named in the warning.
    """
    if media_type == EML:
        mail, attachments, whole = _read_eml(content, read)
        if mail.media_type == HTML:
            return mail
    else:
        attachments, text, whole = _parts_of_msg(content, read)
        mail = read_converted(content, MSG)
        mail = replace(mail, text=joined([mail.text, text.text]), warning=mail.warning or text.warning)
    blocks, warnings = read_attachments(attachments, read)
    if not whole:
        warnings.append("This email is damaged: not all of its attachments could be found.")
    warning = " ".join(filter(None, [mail.warning, *warnings]))
    return replace(mail, text=joined([mail.text, *blocks]), warning=warning or None)


def read_mailbox(content: bytes, read: Read) -> ExtractedText:
    """Return the text of each mail in a mailbox, below a heading with its subject. Raises ExtractionFailed."""
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
        blocks += [heading(1, subject[1] if subject else "Mail"), below(extracted)]
        not_whole += extracted.warning is not None
    if not blocks:
        raise ExtractionFailed("None of the emails in this mailbox can be read.")
    warning = f"{not_whole} of {len(mails)} emails, or some of their attachments, could not be read."
    return ExtractedText(joined(blocks), MBOX, markdown=True, warning=warning if not_whole else None)


def _read_eml(content: bytes, read: Read) -> tuple[ExtractedText, Attachments, bool]:
    """Return a mail without attachments, the attachments, and whether all were found."""
    if b"\0" in content[:100]:
        content = decoded(content).encode()
    content = BARE_BOUNDARY.sub(rb'\1"\2"', content)
    for policy in (email.policy.default, email.policy.compat32):
        try:
            mail = email.message_from_bytes(content, policy=policy)
            blocks, attachments = _parts(mail, read)
            # A page saved by a browser or a wiki has no recipient.
            if mail.get_content_type() == "multipart/related" and not (mail["To"] or mail["Received"]):
                return ExtractedText(joined(blocks), HTML, markdown=True), [], True
            text = joined([*_fields(mail), *blocks])
            return ExtractedText(text, EML, markdown=True), attachments, policy is email.policy.default
        except (MemoryError, ExtractionFailed):
            raise
        except Exception:
            # The library raises anything for a damaged mail: RecursionError, ValueError, AttributeError.
            log.info("Not all parts of a mail could be read", exc_info=True)
    head, _, body = decoded(content).replace("\r\n", "\n").partition("\n\n")
    return ExtractedText(joined([*_fields(email.message_from_string(head)), body]), EML, markdown=True), [], False


def _fields(mail: Message) -> list[str]:
    fields = []
    for name in FIELDS:
        value = str(mail[name] or "")
        raw = next((str(raw) for key, raw in mail.raw_items() if key.lower() == name.lower()), "")
        if not raw.isascii():  # Invalid bytes in a header.
            value = decoded(raw.encode("utf-8", "surrogateescape"))
        elif "=?" in value:
            value = str(make_header(decode_header(value)))
        value = re.sub(r"([<>#*_])", r"\\\1", " ".join(clean(value).split()))
        fields += [f"**{name}**: {value}"] if value else []
    return fields


def _parts(part: Message, read: Read) -> tuple[list[str], Attachments]:
    """Return the text of a mail's part and its attachments; an embedded mail is part of the text."""
    kind = part.get_content_type()
    if part.is_multipart():
        inner = cast("list[Message]", part.get_payload())
        parts = [_parts(one, read) for one in inner]
        attachments = [one for _, attached in parts for one in attached]
        if kind == "multipart/alternative":
            # The first of the alternatives; a longer one if that only points to it.
            lengths = [sum(len("".join(block.split())) for block in blocks) for blocks, _ in parts]
            enough = MIN_SHARE_OF_PAGE * max(lengths, default=0)
            return next((own for (own, _), size in zip(parts, lengths, strict=True) if size >= enough), []), attachments
        blocks = [block for blocks, _ in parts for block in blocks]
        if kind == EML:
            title = " ".join(str(inner[0]["Subject"] or UNNAMED).split())
            blocks = [heading(1, f"Attachment: {clean(title)}"), *_fields(inner[0]), *blocks]
        return blocks, attachments
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    is_text, is_attached = part.get_content_maintype() == "text", part.get_content_disposition() == "attachment"
    if kind in SIGNATURES or (is_text and not is_attached and kind not in (PLAIN, HTML)):
        return [], []
    if is_text and (charset := part.get_content_charset()) and not (kind == HTML and charset == "us-ascii"):
        content = decoded_as(content, charset).encode()
    if not is_text or is_attached:
        return [], [(part.get_filename() or "", content)]
    if kind == HTML:
        return [read(content, HTML).text if content.strip() else ""], []
    text = decoded(content) if content.strip() else ""
    if part.get_param("format") == "flowed":
        text = re.sub(r"(?<=\S)(?<!\n--) \n(?![>\s])", " ", text)
    return [re.sub(r"^(?=#)", r"\\", text, flags=re.M)], []


def _parts_of_msg(content: bytes, read: Read) -> tuple[Attachments, ExtractedText, bool]:
    """Return the attachments (mails without data), the page's text if there is less plain one, and if that is all."""
    import olefile

    attachments: Attachments = []
    text = ExtractedText("", HTML)
    try:
        with olefile.OleFileIO(BytesIO(content)) as file:
            for folder, *inner in file.listdir(streams=False, storages=True):
                if folder.startswith(MSG_ATTACHMENT) and not inner:
                    attachments.append((_first(file, folder, MSG_NAMES), _property(file, folder, MSG_DATA)))
            plain, page = _first(file, "", MSG_PLAIN).split(), _property(file, "", MSG_PAGE)
            if page.strip():
                text = read(page, HTML)
            if len("".join(plain)) >= MIN_SHARE_OF_PAGE * len("".join(text.text.split())):
                text = ExtractedText("", HTML)
            if not plain and not page.strip() and _property(file, "", MSG_RTF):
                text = ExtractedText("", HTML, warning=RTF_NOT_READ)
    except (MemoryError, ExtractionFailed):
        raise
    except Exception:
        # The library raises anything for a damaged file: OSError, ValueError, AttributeError.
        log.info("Not all parts of a mail could be found", exc_info=True)
        return attachments, text, False
    return attachments, text, True


def _first(file: Any, folder: str, names: tuple[tuple[str, str], ...]) -> str:
    return next(filter(None, (_property(file, folder, which).decode(kind, "replace") for which, kind in names)), "")


def _property(file: Any, folder: str, which: str) -> bytes:
    """Return a property of an attachment, or of the mail itself without a folder; empty if it has none."""
    path = [folder, f"__substg1.0_{which}"] if folder else [f"__substg1.0_{which}"]
    return bytes(file.openstream(path).read()) if file.exists(path) else b""
