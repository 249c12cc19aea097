"""The records of what was read from a file.

They stand beside the others, since each file is read in a process of its own: to load all of the records takes as long
as most files.
"""

from __future__ import annotations

from msgspec import Struct


class ExtractedText(Struct, frozen=True):
    """The text of a document, read from a file of the kind ``media_type``; ``markdown`` if it is written in Markdown.

    ``page_starts`` are character offsets into it, empty where there are no pages (slides are pages). ``scans`` are the
    pages, counted from 1, that show something but hold no text. ``warning`` is a sentence about what could not be read,
    where most of it could.
    """

    text: str
    media_type: str
    page_starts: tuple[int, ...] = ()
    markdown: bool = False
    warning: str | None = None
    scans: tuple[int, ...] = ()


class Word(Struct, frozen=True):
    """A word that was recognised on a page, in points from the upper left corner of the page as it is seen."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class RecognisedPage(Struct, frozen=True):
    """The lines of words that were recognised on a page; ``problem`` is a sentence about why there are none."""

    page: int
    lines: tuple[tuple[Word, ...], ...] = ()
    problem: str | None = None
