"""Documents: files, their extracted text and chunks, and the passages and sources made of them."""

import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pkgutil import get_data
from typing import Any, Literal, get_args

from msgspec import Struct

# Where a document's date is from, the most trusted first: a person's correction, a line near the start of its text, its
# name, the properties in its file, its file's time, when it was added.
DateOrigin = Literal["person", "text", "name", "properties", "file", "added"]
DATE_ORIGINS: tuple[DateOrigin, ...] = get_args(DateOrigin)
# What names a figure, its caption, and what a question calls it.
_FIGURES = tomllib.loads((get_data(str(__package__), "figures.toml") or b"").decode())
FIGURE, CAPTION, FIGURE_KIND, TREND = (re.compile(one, re.IGNORECASE | re.MULTILINE) for one in _FIGURES.values())


def dated(dates: Mapping[DateOrigin, str], changes: Mapping[DateOrigin, str | None]) -> dict[str, Any]:
    """Return the dates of a document with changes, of which ``None`` removes one; and the most trusted one."""
    both: dict[DateOrigin, str | None] = {**dates, **changes}
    every = {origin: date for origin, date in both.items() if date}
    origin = min(every, key=DATE_ORIGINS.index)
    return {"dates": every, "date": every[origin], "date_from": origin}


class ExtractedText(Struct, frozen=True):
    """The text of a document, read from a file of the kind ``media_type``; ``markdown`` if it is Markdown.

    ``page_starts`` are character offsets, empty if there are no pages (slides are pages). ``scans`` are the pages,
    counted from 1, that show something but hold no text; ``figures`` are those with a figure beside their text.
    ``warning`` says in a sentence what couldn't be read. ``dates`` are those that the file has for it.
    """

    text: str
    media_type: str
    page_starts: tuple[int, ...] = ()
    markdown: bool = False
    warning: str | None = None
    scans: tuple[int, ...] = ()
    figures: tuple[int, ...] = ()
    dates: Mapping[DateOrigin, str | None] = {}


class Word(Struct, frozen=True):
    """A recognised word, in points from the upper left corner of the displayed page."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class RecognisedPage(Struct, frozen=True):
    """The lines of words recognised on a page; ``problem`` says why there are none."""

    page: int
    lines: tuple[tuple[Word, ...], ...] = ()
    problem: str | None = None


DocumentState = Literal["queued", "reading", "recognising", "embedding", "ready", "failed", "cancelled"]
DOCUMENT_STATES: tuple[DocumentState, ...] = get_args(DocumentState)
# With "-" descending: the largest, the last of the alphabet or the newest first.
DocumentSort = Literal["added", "-added", "date", "-date", "name", "-name", "size", "-size"]
DOCUMENT_SORTS: tuple[DocumentSort, ...] = get_args(DocumentSort)


class NewDocument(Struct, frozen=True):
    """A received file: ``file`` is its name in the uploads, ``origin`` its path on this machine, where it was last
    changed on ``modified``.
    """

    name: str
    media_type: str
    size_bytes: int
    sha256: str
    file: str
    origin: str | None = None
    replaces: int | None = None
    tags: tuple[str, ...] = ()
    # The library it goes to; by default the person's own.
    library_id: int | None = None
    modified: str | None = None


class Document(Struct, frozen=True):
    """A document in a library; ``state`` is its progress.

    ``reason`` says why it failed or what couldn't be read. Of its ``pages``, ``scanned_pages`` hold no text, and
    ``recognised_pages`` of these are done. ``origin`` is the file on this machine, or the web address, it was read
    from. ``replaces`` is the id of the document this is a pending newer version of. With ``deleted_at`` it is in the
    trash. Its ``date`` is in ISO 8601, such as 2024-05-31, 2024-05 or 2024.
    """

    id: int
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    state: DocumentState
    reason: str | None
    chunks: int
    embedded: int
    pages: int | None
    created_at: datetime
    tags: tuple[str, ...] = ()
    origin: str | None = None
    replaces: int | None = None
    scanned_pages: int = 0
    recognised_pages: int = 0
    library_id: int | None = None
    deleted_at: datetime | None = None
    date: str = ""
    date_from: DateOrigin = "added"

    @property
    def is_web_page(self) -> bool:
        return (self.origin or "").startswith(("http://", "https://"))


class SourceState(Struct, frozen=True):
    """The last scan of a source: when, the number of files, and how many were refused.

    ``problem`` says in sentences what couldn't be read; ``checked_at`` is ``None`` before the first scan.
    """

    address: str
    checked_at: datetime | None
    files: int
    refused: int
    problem: str | None


class UnembeddedChunk(Struct, frozen=True):
    """A chunk to be embedded, with the headings above it."""

    chunk_id: int
    document: str
    section: str | None
    text: str


class KnownEmbedder(Struct, frozen=True):
    """An embedding model whose vectors are stored under ``key``.

    ``source`` are the settings that configure it, ``probe`` is its vector of a fixed text (float32 bytes). The active
    model's vectors are searched.
    """

    key: str
    source: dict[str, Any]
    dimension: int
    probe: bytes | None
    active: bool
    version: tuple[int, int]


class Chunk(Struct, frozen=True):
    """A piece of a document: ``text`` is ``document text[start:end]``, in characters.

    If it begins inside a table, list or code, the introducing lines are put in front. ``section`` is the path of
    headings above it, such as ``Prices > Europe``. ``language`` is the one its words are indexed in, such as
    ``german``; empty if unknown.
    """

    position: int
    start: int
    end: int
    text: str
    page: int | None = None
    section: str | None = None
    language: str = ""


def lead_of(text: str, start: int, end: int) -> str:
    """Return the introducing lines in front of a chunk's or passage's own text."""
    return text[: max(0, len(text) - (end - start))]


def find_passage(text: str, passage: str, start: int, end: int) -> tuple[int, int] | None:
    """Return where a passage is in a text that may have changed since, ``None`` if it is gone."""
    passage = passage.removeprefix(lead_of(passage, start, end))
    if text[start:end] == passage:
        return start, end
    start_now = text.find(passage) if passage else -1
    return (start_now, start_now + len(passage)) if start_now >= 0 else None


class Passage(Struct, frozen=True):
    """A retrieved chunk, with its place in its document and its score (0 to 1, higher is better).

    ``gap`` is the white space between it and the chunk before it, ``None`` if they aren't adjacent.
    """

    chunk_id: int
    document_id: int
    document: str
    start: int
    end: int
    text: str
    page: int | None
    score: float
    section: str | None = None
    gap: str | None = None
    of_guide: bool = False
    date: str | None = None
    date_from: DateOrigin | None = None
