"""Images of pages: rendered on request, a few at a time, with a short-lived cache."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from rag_assistant.documents.reading import MAX_MEMORY_MB
from rag_assistant.documents.uploads import Uploads
from rag_assistant.extraction.formats.kinds import IMAGES, PDF
from rag_assistant.extraction.page_render import Mark, MarkedLines, draw_page
from rag_assistant.extraction.recognised import letters_of, lines_marked
from rag_assistant.records import Document
from rag_assistant.records.errors import ExtractionFailed, PageNotDrawn
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.rows import ScanStore

# The kinds whose pages can be rendered.
DRAWN = (PDF, *IMAGES)
MAX_DRAWN_AT_ONCE = 2
MAX_KEPT_BYTES = 40_000_000
MAX_SECONDS = 20.0
WAIT_TIMEOUT_SECONDS = 20.0
RETRY_INTERVAL_SECONDS = 30.0


class PageView(Struct, frozen=True):
    """What to show of a document: a page, counted from 1; with ``whole=False`` its marked part, a range of the text."""

    page: int
    passage: tuple[int, int] = (0, 0)
    whole: bool = False


# A file's content, and what is shown of it.
Wanted = tuple[str, PageView]


class PagePictures:
    """Renders pages of PDF documents, and images."""

    def __init__(self, uploads: Uploads, scans: ScanStore, settings: Callable[[], Settings]) -> None:
        self._uploads = uploads
        self._scans = scans
        self._settings = settings
        self._drawing = threading.BoundedSemaphore(MAX_DRAWN_AT_ONCE)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Wanted, bytes] = OrderedDict()
        self._failed: dict[Wanted, tuple[float, str]] = {}

    def whole_page(self, documents: DocumentStore, document_id: int, page: int, timeout_seconds: float) -> bytes:
        """Return a PNG of a page without a mark. Raises DocumentNotFound, or PageNotDrawn with why."""
        return self.picture(documents, document_id, PageView(page, whole=True), timeout_seconds)

    def picture(
        self, documents: DocumentStore, document_id: int, view: PageView, timeout_seconds: float = MAX_SECONDS
    ) -> bytes:
        """Return a PNG of a person's document. Raises DocumentNotFound, or PageNotDrawn with why."""
        key = _key(documents.get(document_id), view)
        cached = self._known(key)
        if cached is not None:
            return cached
        if not self._drawing.acquire(timeout=min(timeout_seconds, WAIT_TIMEOUT_SECONDS)):
            raise PageNotDrawn("Other pages are being rendered. Try again in a moment.")
        try:
            return self._known(key) or self._drawn(documents, document_id, view, timeout_seconds)
        finally:
            self._drawing.release()

    def _drawn(self, documents: DocumentStore, document_id: int, view: PageView, timeout_seconds: float) -> bytes:
        with self._uploads.local_file(documents, document_id) as (document, path):
            key = _key(document, view)  # A newer version may have replaced it meanwhile.
            try:
                picture = draw_page(
                    path,
                    document.media_type,
                    view.page,
                    self._mark(documents, document_id, view),
                    memory_mb=MAX_MEMORY_MB,
                    timeout_seconds=min(timeout_seconds, self._settings().extraction_timeout_seconds),
                )
            except ExtractionFailed as error:
                with self._lock:
                    self._failed = {
                        key: failure for key, failure in self._failed.items() if failure[0] > time.monotonic()
                    }
                    self._failed[key] = time.monotonic() + RETRY_INTERVAL_SECONDS, str(error)
                raise PageNotDrawn(str(error)) from error
        with self._lock:
            self._kept[key] = picture
            while sum(map(len, self._kept.values())) > MAX_KEPT_BYTES:
                self._kept.popitem(last=False)
        return picture

    def _known(self, key: Wanted) -> bytes | None:
        """Return a cached image. Raises PageNotDrawn for what couldn't be rendered a moment ago."""
        with self._lock:
            until, sentence = self._failed.get(key, (0.0, ""))
            if until > time.monotonic():
                raise PageNotDrawn(sentence)
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _mark(self, documents: DocumentStore, document_id: int, view: PageView) -> Mark | MarkedLines:
        """Return what to mark of a passage on a page; for a scanned one, its lines."""
        extracted = documents.text(document_id)
        starts = (*extracted.page_starts, len(extracted.text))
        if not 1 <= view.page < len(starts):
            return Mark()
        first, last = starts[view.page - 1], starts[view.page]

        def on_page(start: int, end: int) -> str:
            return extracted.text[max(start, first) : max(first, min(end, last))]

        before = len(letters_of(on_page(first, view.passage[0])))
        passage = on_page(*view.passage)
        scan = self._scans.recognised(document_id, view.page).get(view.page)
        if scan is None:
            return Mark(passage, before, view.whole)
        return MarkedLines(lines_marked(scan, passage, before), view.whole)


def _key(document: Document, view: PageView) -> Wanted:
    """Return the cache key of an image. Raises PageNotDrawn for a document that can't be rendered."""
    if document.media_type not in DRAWN:
        raise PageNotDrawn(f"{document.name} is neither a PDF nor an image; its text is shown instead.")
    return document.sha256, view
