"""What is said about scanned pages, and how their recognised text becomes part of a document's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from rag_assistant.extraction.recognised import with_recognised
from rag_assistant.extraction.text_recognition import INSTALL
from rag_assistant.records.documents import ExtractedText, RecognisedPage

RECOGNITION_OFF = "Text recognition is switched off (setting ocr)."
RECOGNITION_MISSING = f"Text recognition is not installed: run `{INSTALL}` and restart."
MAX_PROBLEMS_TOLD = 3


def with_scans(
    extracted: ExtractedText, recognised: Mapping[int, RecognisedPage], why_not: str | None
) -> ExtractedText:
    """Return a text with what was recognised on its scanned pages, and with a warning about those that are not read.

    ``why_not`` says why this installation recognises nothing. Pages that still wait are no reason to warn.
    """
    merged = with_recognised(extracted, recognised)
    unread = [page for page in extracted.scans if page not in recognised] if why_not else []
    count = len(merged.page_starts)
    blank = [page.page for page in recognised.values() if not page.lines and not page.problem]
    said = [extracted.warning, _unread(unread, count, why_not), *_problems(recognised), _blank(blank, count)]
    return replace(merged, warning=" ".join(filter(None, said)) or None)


def _unread(pages: Collection[int], count: int, why_not: str | None) -> str | None:
    if not pages:
        return None
    holds = "holds" if len(pages) == 1 else "hold"
    which = f"Page {min(pages)} of {count}" if len(pages) == 1 else f"{len(pages)} of {count} pages"
    return f"{which} {holds} no text, but a scan or a picture. {why_not}"


def _blank(pages: Collection[int], count: int) -> str | None:
    if not pages:
        return None
    if len(pages) == count:
        return "No text was recognised in it."
    return f"No text was recognised on {_named(sorted(pages))}.".replace("on Page", "on page")


def _problems(recognised: Mapping[int, RecognisedPage]) -> list[str]:
    """Return what went wrong, each sentence once with the pages where it did."""
    pages: dict[str, list[int]] = {}
    for page in recognised.values():
        if page.problem:
            pages.setdefault(page.problem, []).append(page.page)
    return [f"{_named(where)}: {problem}" for problem, where in list(pages.items())[:MAX_PROBLEMS_TOLD]]


def _named(pages: list[int]) -> str:
    return f"Page {pages[0]}" if len(pages) == 1 else f"Pages {pages[0]} to {pages[-1]} ({len(pages)})"
