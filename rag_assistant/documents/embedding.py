"""Embed the chunks of documents, batch by batch; also with another embedding model."""

import logging
from collections.abc import Callable

from msgspec import Struct

from rag_assistant.records import DocumentState
from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.retrieval.embeddings.registry import PROBE_TEXT, Embedder, Embedders
from rag_assistant.runtime.background import JobQueue
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore

log = logging.getLogger(__name__)

CHUNKS_AT_ONCE = 16
# A longer document lets others go first after each batch: this is some five seconds' worth.
MAX_CHUNKS_IN_A_ROW = 8 * CHUNKS_AT_ONCE
CHUNKS_READ = 8 * MAX_CHUNKS_IN_A_ROW
# How long to wait before a retry: an embedding model comes back, or somebody fixes it.
RETRY_BACKOFF_SECONDS = (2.0, 8.0, 30.0, 60.0, 120.0, 300.0)


class DocumentEmbedder(Struct, frozen=True):
    """Embeds documents at the library's request, and calls ``finish`` with each document that has all its vectors."""

    documents: DocumentStore
    embeddings: EmbeddingStore
    embedders: Embedders
    queue: JobQueue
    finish: Callable[[int, str], None]
    is_closing: Callable[[], bool]

    def embed(self, document_id: int) -> None:
        """Embed the missing chunks batch by batch; failures are retried later."""
        try:
            model = self.embedders.configured()
            if self.documents.take_in(document_id, "embedding") and self._embed_missing(
                document_id, model, gives_way=True
            ):
                self.finish(document_id, model.key)
            self._switch_if_due(model)
        except EmbedderFailed as error:
            attempt = self.documents.count_attempt(document_id)
            if attempt is None:
                return  # It was deleted.
            if attempt > len(RETRY_BACKOFF_SECONDS):
                self._give_up(document_id, error)
                return
            delay = RETRY_BACKOFF_SECONDS[attempt - 1]
            self.documents.say(document_id, f"{error} Trying again in {delay:g} seconds.")
            self.queue.add("embed", document_id, delay)

    def _embed_missing(self, document_id: int, model: Embedder, *, gives_way: bool = False) -> bool:
        """Return whether every chunk has its vector; a long one that ``gives_way`` is queued anew if others wait."""
        while missing := self.embeddings.without_embedding(document_id, model.key, CHUNKS_READ):
            is_long = gives_way and len(missing) > MAX_CHUNKS_IN_A_ROW
            for start in range(0, len(missing), CHUNKS_AT_ONCE):
                batch = missing[start : start + CHUNKS_AT_ONCE]
                vectors = model.embed([indexed_text(one.document, one.section, one.text) for one in batch])
                rows = [(one.chunk_id, vector.tobytes()) for one, vector in zip(batch, vectors, strict=True)]
                if self.is_closing() or not self.embeddings.keep_embeddings(document_id, model.key, rows):
                    return False
                if is_long and self.queue.waiting[0]:
                    self.queue.add("embed", document_id)
                    return False
        return True

    def _give_up(self, document_id: int, error: EmbedderFailed) -> None:
        problem = f"{error} It is found by keyword only: its embeddings are missing."
        self.documents.fail(document_id, problem, also_ready=True)
        log.warning("Document %s failed: %s", document_id, error)

    # --- another embedding model, or missing vectors

    def reindex(self, after: int) -> None:
        """Embed the first document after ``after`` that lacks vectors, and queue the next; then switch."""
        try:
            model = self.embedders.configured()
        except EmbedderFailed as error:
            log.log(logging.DEBUG if after else logging.ERROR, "The embedding model cannot be used: %s", error)
            self.queue.add("reindex", after, RETRY_BACKOFF_SECONDS[-1])
            return
        document_id = self.embeddings.next_without(model.key, after)
        if document_id is None:
            self._switch_if_due(model)
            return
        try:
            if self.documents.take_in(document_id, "ready", "failed") and self._embed_missing(document_id, model):
                self.finish(document_id, model.key)
        except EmbedderFailed as error:
            self._later_or_never(document_id, model, error)
            return
        self.queue.add("reindex", document_id)

    def leave_to_others(self) -> None:
        """Leave it to another process to embed what the configured model hasn't. Raises EmbedderFailed."""
        self.embeddings.leave_to_others(self.embedders.configured().key)

    def _later_or_never(self, document_id: int, model: Embedder, error: EmbedderFailed) -> None:
        """Wait for a model that is unreachable; but skip a document that only it can't embed."""
        if not _answers(model):
            log.warning("Re-embedding waits: %s", error)
            self.queue.add("reindex", document_id - 1, RETRY_BACKOFF_SECONDS[2])
            return
        if (self.documents.count_attempt(document_id) or 0) > len(RETRY_BACKOFF_SECONDS):
            self._give_up(document_id, error)
        self.queue.add("reindex", document_id)

    def _switch_if_due(self, model: Embedder) -> None:
        """Switch search to a model as soon as it has embedded everything; delete the models before it."""
        serving = self.embeddings.serving()
        if serving is None:
            return
        if serving.key != model.key:
            if not self.embeddings.activate(model.key):
                if self.embeddings.next_without(model.key, 0) is not None:
                    self.queue.add("reindex", 0, RETRY_BACKOFF_SECONDS[0])
                return
            log.info("Search now uses the vectors of %s.", model.key)
        for embedder in self.embeddings.models():
            if embedder.key != model.key:
                self.embeddings.forget(embedder.key)


def _answers(model: Embedder) -> bool:
    """Return whether a model can embed anything at all."""
    try:
        model.embed([PROBE_TEXT])
    except EmbedderFailed:
        return False
    return True


# The newest documents represent the library, each by its beginning.
DOCUMENTS_READ, CHARACTERS_READ = 20, 600
READY: tuple[DocumentState, ...] = ("ready",)
# Share of whole words in MiniLM's vocabulary: 240 paragraphs of English Wikipedia have .59 and more, 95 of 100 German
# ones .43 and less, and Chinese ones none; 98 of 100 English abstracts have .5 and more.
MIN_KNOWN_WORDS = 0.5
# From this many documents, and this share of those read, a note is shown.
MIN_DOCUMENTS, MIN_SHARE = 2, 0.2


class Unfamiliar(Struct, frozen=True):
    """How many of the newest documents are in a language the embedding model doesn't know."""

    documents: int
    read: int


def unfamiliar_documents(documents: DocumentStore, chunks: ChunkStore, embedders: Embedders) -> Unfamiliar | None:
    """Check the newest documents; ``None`` if there is nothing to note or the model isn't ready."""
    if not embedders.loaded:
        return None
    newest = [one.id for one in documents.page(DOCUMENTS_READ, states=READY)]
    texts = chunks.beginnings(newest, CHARACTERS_READ).values()
    try:
        embedder = embedders.configured()
        unknown = sum(embedder.familiarity(text).words < MIN_KNOWN_WORDS for text in texts)
    except EmbedderFailed:
        return None
    return Unfamiliar(unknown, len(texts)) if unknown >= max(MIN_DOCUMENTS, MIN_SHARE * len(texts)) else None
