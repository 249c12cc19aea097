"""From the file of a document to its text in chunks: what was written is read, what was scanned is recognised."""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.extraction.extract import extract
from rag_assistant.extraction.recognised import with_recognised
from rag_assistant.extraction.text_recognition import INSTALL, is_installed, recognise
from rag_assistant.records import Document, DocumentState
from rag_assistant.records.documents import ExtractedText, RecognisedPage
from rag_assistant.records.errors import ExtractionCancelled, ExtractionFailed
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.terms import index_terms
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.scans import ScanStore

# So many scanned pages are read by one process before the next document has its turn; to start one takes a second.
PAGES_AT_ONCE = 20
# What a process that reads a document, or draws a page of it, may use.
MAX_MEMORY_MB = 2048
# What is to be done with a document next.
Following = Literal["embed", "recognise"] | None


class DocumentReader(Struct, frozen=True):
    """Reads documents; the library says when."""

    documents: DocumentStore
    chunks: ChunkStore
    scans: ScanStore
    local_file: Callable[[int], AbstractContextManager[tuple[Document, Path]]]
    settings: Callable[[], Settings]
    is_closing: Callable[[], bool]

    @property
    def recognises(self) -> bool:
        """Whether the text of scanned pages is recognised here."""
        return self._why_not_recognised is None

    def read(self, document_id: int) -> Following:
        """Keep text, chunks and words: keyword search finds the document from here on."""
        document = self.documents.take(document_id)
        if document is None:
            return None
        extracted = self._extracted(document, "reading")
        recognised = self.scans.add(document_id, extracted.scans)
        return self._keep_text(document, with_scans(extracted, recognised, self._why_not_recognised), "reading")

    def recognise(self, document_id: int) -> Following:
        """Recognise the text of scanned pages, as long as nothing is to be read; when all are through, keep it."""
        if not self.documents.take_in(document_id, "recognising"):
            return None
        document = self.documents.get(document_id)
        if self.recognises and not self._recognise_pages(document):
            return "recognise"
        extracted = self._extracted(document, "recognising")
        recognised = self.scans.recognised(document_id)
        return self._keep_text(document, with_scans(extracted, recognised, self._why_not_recognised), "recognising")

    def _recognise_pages(self, document: Document) -> bool:
        """Recognise pages until other work waits; return whether all of the document are through."""
        settings = self.settings()
        with self.local_file(document.id) as (_, path):
            pages = recognise(
                path,
                document.media_type,
                self.scans.pending(document.id)[:PAGES_AT_ONCE],
                memory_mb=MAX_MEMORY_MB,
                timeout_seconds=settings.extraction_timeout_seconds,
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
        """Return what a document's file holds. Raises ExtractionFailed, ExtractionCancelled."""
        settings = self.settings()
        with self.local_file(document.id) as (_, path):
            return extract(
                path,
                document.media_type,
                memory_mb=MAX_MEMORY_MB,
                timeout_seconds=settings.extraction_timeout_seconds,
                cancelled=lambda: self._is_over(document.id, state),
            )

    def _keep_text(self, document: Document, extracted: ExtractedText, state: DocumentState) -> Following:
        """Cut a text into chunks and keep it; what comes next is embedding it, or recognising it."""
        settings = self.settings()
        too_late = time.monotonic() + settings.extraction_timeout_seconds

        def refuse() -> None:
            if self._is_over(document.id, state):
                raise ExtractionCancelled
            if time.monotonic() > too_late:
                raise ExtractionFailed("Splitting this text into chunks took too long. Split the file.")

        if not extracted.text.strip() and extracted.warning:
            raise ExtractionFailed(extracted.warning)
        cut = chunk_document(extracted, settings.chunk_chars, refuse)
        chunks, terms = index_terms(document.name, cut)
        is_current = self.chunks.keep_text(document.id, extracted, chunks, terms)
        # Or another process kept the same, before this one took the document over.
        if is_current or self.documents.is_ours_in("embedding" if chunks else "recognising", document.id):
            return "embed" if chunks else "recognise"
        return None

    def _is_over(self, document_id: int, state: DocumentState) -> bool:
        """Tell whether work on a document is to end: it was cancelled, deleted or taken over, or we close."""
        return self.is_closing() or not self.documents.is_ours_in(state, document_id)

    @property
    def _why_not_recognised(self) -> str | None:
        """A sentence about why scanned pages are not read here; ``None`` where they are."""
        if self.settings().ocr == "off":
            return RECOGNITION_OFF
        return None if is_installed() else RECOGNITION_MISSING


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
    sentences = [extracted.warning, _unread(unread, count, why_not), *_problems(recognised), _blank(blank, count)]
    return replace(merged, warning=" ".join(filter(None, sentences)) or None)


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
