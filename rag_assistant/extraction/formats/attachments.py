"""Read the files attached to another file, each below a heading with its name."""

import re
from collections.abc import Callable
from typing import TypeAlias

from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.extraction.formats.markup import heading
from rag_assistant.extraction.formats.texts import clean
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

# Reads a file of a kind.
Read: TypeAlias = Callable[[bytes, str], ExtractedText]
# An attachment: its name and its content.
Attachments: TypeAlias = list[tuple[str, bytes]]

MAX_NAMED = 3
MAX_NAME_CHARS = 200
UNNAMED = "without a name"
HEADING_OR_CODE = re.compile(r"^```.*?^```[^\n]*$|^#{1,5}(?= )", re.M | re.S)


def read_attachments(attachments: Attachments, read: Read) -> tuple[list[str], list[str | None]]:
    """Return the texts of some files and warnings about them; unreadable files are named."""
    blocks, warnings, unread = list[str](), list[str | None](), list[str]()
    for given, attached in attachments:
        name = readable(given)
        try:
            extracted = read(attached, media_type_of(attached, name))
        except (ExtractionFailed, UnsupportedDocument):
            unread.append(name)
            continue
        if extracted.text.strip():
            blocks += [heading(1, f"Attachment: {name}"), below(extracted)]
            warnings.append(extracted.warning and f"{name}: {extracted.warning}")
        if extracted.scans or not extracted.text.strip():
            unread.append(name)
    if unread:
        names = ", ".join(unread[:MAX_NAMED])
        if len(unread) > MAX_NAMED:
            names += f" and {len(unread) - MAX_NAMED} more"
        warnings.append(f"Attachments not read, or only partly: {names}. Add them separately.")
    return blocks, warnings


def readable(name: str) -> str:
    """Return a displayable name; attachments may have names in any bytes."""
    return " ".join(clean(name).split())[:MAX_NAME_CHARS] or UNNAMED


def below(extracted: ExtractedText) -> str:
    """Return a text with its headings one level below the attachment's; only Markdown has any."""
    mark = "#" if extracted.markdown else "\\"
    return HEADING_OR_CODE.sub(lambda one: one[0] if one[0].startswith("`") else mark + one[0], extracted.text)
