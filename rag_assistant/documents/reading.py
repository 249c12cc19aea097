"""From the file of a document to its text in chunks, with text recognition for scanned pages."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.extraction.extract import extract
from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.extraction.recognised import with_recognised
from rag_assistant.extraction.text_recognition import INSTALL, is_installed, recognise
from rag_assistant.files.store import BYTES_AT_ONCE
from rag_assistant.records import Chunk, Document, DocumentState
from rag_assistant.records.documents import ExtractedText, RecognisedPage
from rag_assistant.records.errors import ExtractionCancelled, ExtractionFailed
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.dates import date_in_name, date_in_text
from rag_assistant.retrieval.terms import index_terms
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.rows import ScanStore

# How many scanned pages one process reads before the next document's turn; starting one takes a second.
PAGES_AT_ONCE = 20
# Limits of a process that reads a document, or renders a page.
MAX_MEMORY_MB = 2048
# A document's next step.
Following = Literal["embed", "recognise"] | None


class DocumentReader(Struct, frozen=True):
    """Reads documents at the library's request."""

    documents: DocumentStore
    chunks: ChunkStore
    scans: ScanStore
    local_file: Callable[[int], AbstractContextManager[tuple[Document, Path]]]
    settings: Callable[[], Settings]
    is_closing: Callable[[], bool]

    @property
    def recognises(self) -> bool:
        """Whether text recognition is available and switched on."""
        return self._why_not_recognised is None

    def read(self, document_id: int) -> Following:
        """Store text, chunks and words: keyword search finds the document from here on."""
        document = self.documents.take(document_id)
        if document is None:
            return None
        extracted = self._extracted(document, "reading")
        recognised = self.scans.add(document_id, extracted.scans)
        return self._keep_text(document, with_scans(extracted, recognised, self._why_not_recognised), "reading")

    def recognise(self, document_id: int) -> Following:
        """Recognise scanned pages while nothing else is to be read; after the last one, store their text."""
        if not self.documents.take_in(document_id, "recognising"):
            return None
        document = self.documents.get(document_id)
        if self.recognises and not self._recognise_pages(document):
            return "recognise"
        extracted = self._extracted(document, "recognising")
        recognised = self.scans.recognised(document_id)
        return self._keep_text(document, with_scans(extracted, recognised, self._why_not_recognised), "recognising")

    def _recognise_pages(self, document: Document) -> bool:
        """Recognise pages until other work waits; return whether the document's last page is done."""
        with self.local_file(document.id) as (_, path):
            pages = recognise(
                path,
                document.media_type,
                self.scans.pending(document.id)[:PAGES_AT_ONCE],
                memory_mb=MAX_MEMORY_MB,
                timeout_seconds=self.settings().extraction_timeout_seconds,
                cancelled=lambda: self._is_over(document.id, "recognising"),
            )
            with closing(pages):
                for page in pages:
                    if not self.scans.keep(document.id, page):
                        raise ExtractionCancelled
                    if self.documents.any_queued():
                        break
        return not self.scans.pending(document.id)

    def _extracted(self, document: Document, state: DocumentState) -> ExtractedText:
        """Return the text of a document's file. Raises ExtractionFailed, ExtractionCancelled."""
        with self.local_file(document.id) as (_, path):
            with path.open("rb") as file:  # A reader may have come since it was uploaded.
                kind = media_type_of(file.read(BYTES_AT_ONCE), document.name)
            return extract(
                path,
                kind,
                memory_mb=MAX_MEMORY_MB,
                timeout_seconds=self.settings().extraction_timeout_seconds,
                cancelled=lambda: self._is_over(document.id, state),
            )

    def _keep_text(self, document: Document, extracted: ExtractedText, state: DocumentState) -> Following:
        """Chunk a text and store it; return the next step, embedding or recognition."""
        settings = self.settings()
        too_late = time.monotonic() + settings.extraction_timeout_seconds

        def refuse() -> None:
            if self._is_over(document.id, state):
                raise ExtractionCancelled
            if time.monotonic() > too_late:
                raise ExtractionFailed("Splitting this text into chunks took too long. Split the file.")

        if not extracted.text.strip() and extracted.warning:
            raise ExtractionFailed(extracted.warning)
        chunks, terms = index_terms(document.name, chunk_document(extracted, settings.chunk_chars, refuse))
        dated = with_dates(extracted, document.name, chunks)
        is_current = self.chunks.keep_text(document.id, dated, chunks, terms)
        # Or another process stored the same, before this one took the document over.
        if is_current or self.documents.is_ours_in("embedding" if chunks else "recognising", document.id):
            return "embed" if chunks else "recognise"
        return None

    def _is_over(self, document_id: int, state: DocumentState) -> bool:
        """Return whether to stop work on a document: it was cancelled, deleted or taken over, or we are closing."""
        return self.is_closing() or not self.documents.is_ours_in(state, document_id)

    @property
    def _why_not_recognised(self) -> str | None:
        """Return why scanned pages aren't read here; ``None`` if they are."""
        if self.settings().ocr == "off":
            return RECOGNITION_OFF
        return None if is_installed() else RECOGNITION_MISSING


def with_dates(extracted: ExtractedText, name: str, chunks: Sequence[Chunk]) -> ExtractedText:
    """Return a text with the dates that it and its document's name have."""
    today, language = datetime.now(UTC).date(), next((one.language for one in chunks if one.language), "")
    dates = {"text": date_in_text(extracted.text, language, today), "name": date_in_name(name, today)}
    return replace(extracted, dates={**extracted.dates, **dates})


RECOGNITION_OFF = "Text recognition is switched off (setting ocr)."
RECOGNITION_MISSING = f"Text recognition is not installed: run `{INSTALL}` and restart."
INSTEAD = "but a scan, a picture, or letters that the font does not name."
MAX_PROBLEMS_TOLD = 3


def with_scans(
    extracted: ExtractedText, recognised: Mapping[int, RecognisedPage], why_not: str | None
) -> ExtractedText:
    """Return a text with what was recognised on its scanned pages, and a warning about unread ones.

    ``why_not`` says why this installation recognises nothing. Pages that still wait cause no warning.
    """
    merged = with_recognised(extracted, recognised)
    unread = [page for page in extracted.scans if page not in recognised] if why_not else []
    count = len(merged.page_starts)
    blank = [page.page for page in recognised.values() if not page.lines and not page.problem]
    unread_words = [_unread(unread, count), why_not] if unread else []
    sentences = [extracted.warning, *unread_words, *_problems(recognised), _blank(blank, count)]
    return replace(merged, warning=" ".join(filter(None, sentences)) or None)


def _unread(pages: Collection[int], count: int) -> str:
    if len(pages) == 1:
        return f"Page {min(pages)} of {count} holds no readable text, {INSTEAD}"
    return f"{len(pages)} of {count} pages hold no readable text, {INSTEAD}"


def _blank(pages: Collection[int], count: int) -> str | None:
    if not pages:
        return None
    if len(pages) == count:
        return "No text was recognised in it."
    return f"No text was recognised on {_named(sorted(pages))}.".replace("on Page", "on page")


def _problems(recognised: Mapping[int, RecognisedPage]) -> list[str]:
    """Return the problems, each sentence once with its pages."""
    pages: dict[str, list[int]] = {}
    for page in recognised.values():
        if page.problem:
            pages.setdefault(page.problem, []).append(page.page)
    return [f"{_named(where)}: {problem}" for problem, where in list(pages.items())[:MAX_PROBLEMS_TOLD]]


def _named(pages: list[int]) -> str:
    return f"Page {pages[0]}" if len(pages) == 1 else f"Pages {pages[0]} to {pages[-1]} ({len(pages)})"
