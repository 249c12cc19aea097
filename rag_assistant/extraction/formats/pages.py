"""Put pages together: one text, and where each page starts in it."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assistant.records.documents import ExtractedText

PAGE_BREAK = "\n\n"


def pages_of(
    pages: Sequence[str], media_type: str, warning: str | None = None, *, markdown: bool = False
) -> ExtractedText:
    """Return the pages as one text with their starts."""
    starts, length = [], 0
    for page in pages:
        starts.append(length)
        length += len(page) + len(PAGE_BREAK)
    text = "".join(page + PAGE_BREAK for page in pages)
    return ExtractedText(text, media_type, tuple(starts), markdown, warning)
