"""Documents: the file that came, what was read from it, its chunks, and the passages and sources made of them."""

from datetime import datetime
from typing import Any, Literal, get_args

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


DocumentState = Literal["queued", "reading", "recognising", "embedding", "ready", "failed", "cancelled"]
DOCUMENT_STATES: tuple[DocumentState, ...] = get_args(DocumentState)
# With "-" the largest, the last of the alphabet or the newest comes first.
DocumentSort = Literal["added", "-added", "name", "-name", "size", "-size"]
DOCUMENT_SORTS: tuple[DocumentSort, ...] = get_args(DocumentSort)


class NewDocument(Struct, frozen=True):
    """A file that was received: ``file`` is its name below the uploads, ``origin`` where it lies on this machine."""

    name: str
    media_type: str
    size_bytes: int
    sha256: str
    file: str
    origin: str | None = None
    replaces: int | None = None
    tags: tuple[str, ...] = ()
    # The library that it goes to; nothing said: the person's own.
    library_id: int | None = None


class Document(Struct, frozen=True):
    """A document of the library; ``state`` says how far it has come.

    ``reason`` is a sentence about why it failed or what of it could not be read. Of its ``pages``, ``scanned_pages``
    hold no text, and text recognition is through with ``recognised_pages`` of these. ``origin`` is the file on this
    machine that it was read from, or the address of a web page. While it is the newer version of another document,
    ``replaces`` is that one's id. ``deleted_at``: it is in the trash.
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

    @property
    def is_web_page(self) -> bool:
        """Whether it was added by its address on the web."""
        return (self.origin or "").startswith(("http://", "https://"))


class SourceState(Struct, frozen=True):
    """What came of looking through a source of documents: when, how many files it holds, how many were refused.

    ``problem`` is a sentence or more about what could not be read, ``checked_at`` ``None`` before the first time.
    """

    address: str
    checked_at: datetime | None
    files: int
    refused: int
    problem: str | None


class UnembeddedChunk(Struct, frozen=True):
    """A chunk that is to be embedded, with what stands above it."""

    chunk_id: int
    document: str
    section: str | None
    text: str


class KnownEmbedder(Struct, frozen=True):
    """An embedding model whose vectors are kept under ``key``.

    ``source`` are the settings that lead to it, ``probe`` is what it made of a fixed text (float32 bytes). The vectors
    of the active one are searched.
    """

    key: str
    source: dict[str, Any]
    dimension: int
    probe: bytes | None
    active: bool
    version: tuple[int, int]


class Chunk(Struct, frozen=True):
    """A piece of a document: ``text`` is ``document text[start:end]``, in characters.

    Where it begins in the middle of a table, a list or code, what says what that is about stands in front.
    ``section`` is the path of headings above it, such as ``Prices > Europe``, where there is one. ``language`` is the
    one by which its words are indexed, such as ``german``; empty where it is not known.
    """

    position: int
    start: int
    end: int
    text: str
    page: int | None = None
    section: str | None = None
    language: str = ""


def lead_of(text: str, start: int, end: int) -> str:
    """Return what stands in front of the text of a chunk or passage that is not from its own place."""
    return text[: max(0, len(text) - (end - start))]


def find_passage(text: str, passage: str, start: int, end: int) -> tuple[int, int] | None:
    """Return where a passage stands in a text that may have changed since, ``None`` if it is there no more."""
    passage = passage.removeprefix(lead_of(passage, start, end))
    if text[start:end] == passage:
        return start, end
    start_now = text.find(passage) if passage else -1
    return (start_now, start_now + len(passage)) if start_now >= 0 else None


class Passage(Struct, frozen=True):
    """A chunk that was retrieved, with its place in its document and its score (0 to 1, higher is better).

    ``gap`` is the white space between it and the chunk before it, ``None`` where the two do not touch.
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
