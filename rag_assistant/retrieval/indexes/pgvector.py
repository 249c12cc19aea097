"""pgvector: PostgreSQL searches the vectors itself, so that no server needs a copy of them in memory.

Its table is always in sync with the embeddings (storage/documents/vector_table.py). A thread fills a new table, and
builds an index for each embedding model with enough vectors, even before it is searched. Until an index is ready,
PostgreSQL scans all vectors.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import IndexUnavailable, StorageFailed
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit

if TYPE_CHECKING:
    from rag_assistant.storage.documents.embeddings import EmbeddingStore
    from rag_assistant.storage.documents.scope import ChunksInScope
    from rag_assistant.storage.documents.vector_table import VectorIndexes, VectorTable

log = logging.getLogger(__name__)

# Fewer need no index: PostgreSQL scans all of them.
INDEXED_FROM_CHUNKS = 10_000
# The limit of an index in half precision.
MAX_DIMENSION = 4000
POLL_INTERVAL_SECONDS = 10.0
RETRY_INTERVAL_SECONDS = 60.0


class PgVectorIndex:
    """The vectors of one embedding model in PostgreSQL, each searchable as soon as it is stored."""

    name = "pgvector"

    def __init__(
        self,
        store: EmbeddingStore,
        table: VectorTable,
        indexes: VectorIndexes,
        model: KnownEmbedder,
        indexed_from: int = INDEXED_FROM_CHUNKS,
    ) -> None:
        self._indexed_from = indexed_from
        self._store = store
        self._table = table
        self._indexes = indexes
        self._known = model
        # The keys of the models whose vectors are all in the table, and of those whose index is ready.
        self._filled: set[str] = set()
        self._indexed: set[str] = set()
        self._at_work = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def state(self) -> str:
        """``off`` while it isn't needed, ``building`` while the table is filled or an index is built, or ``ready``."""
        if self._at_work:
            return "building"
        return "ready" if self._known.key in self._filled else "off"

    @property
    def notice(self) -> str | None:
        """What is being built, for people who wait for it."""
        if not self._at_work:
            return None
        try:
            done = self._indexes.progress()
        except StorageFailed:
            done = None
        how_much = f" ({done:.0%})" if done is not None else ""
        return f"The vector index is being built{how_much}. Until it is ready, each search scans all vectors."

    def start(self) -> None:
        """Start filling the table and building indexes, once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="pgvector", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Start nothing more. PostgreSQL completes an index in progress by itself."""
        self._closing.set()

    def search(
        self,
        vectors: Sequence[Vectors],
        limit: int,
        version: tuple[int, int],  # noqa: ARG002 - the table is in step with every one
        within: ChunksInScope | None = None,
    ) -> list[list[Hit]]:
        """Return for each vector up to ``limit`` chunk ids with their cosine, nearest first; with ``within``, only of
        those.

        Raises IndexUnavailable until the table is filled.
        """
        key = self._known.key
        try:
            if key not in self._filled:
                self._look()
            if key in self._filled:
                indexed = key in self._indexed
                return [
                    self._table.nearest(self._known, vector.tobytes(), limit, within, indexed=indexed)
                    for vector in vectors
                ]
        except StorageFailed as error:
            raise IndexUnavailable("pgvector does not answer.") from error
        raise IndexUnavailable("The vectors are not in pgvector's table yet.")

    def come_in_step(self) -> None:
        """Fill the table, and build and drop indexes, until everything is up to date."""
        models = self._store.models()
        large = [model for model in models if model.version[0] - model.version[1] >= self._indexed_from]
        try:
            for model in models:
                if model.key not in self._filled:
                    self._fill(model)
            self._indexes.drop_others(models)
            self._indexed = self._indexes.ready(large)
            for model in large:
                if model.key not in self._indexed and model.dimension <= MAX_DIMENSION:
                    self._at_work = True
                    log.info("An index for the vectors of %s is being built.", model.key)
                    self._indexes.build(model)
                    self._indexed = self._indexes.ready(large)
        finally:
            self._at_work = False

    def _fill(self, model: KnownEmbedder) -> None:
        if self._table.lacks(model):
            self._at_work = True
            added = self._table.fill(model)
            log.info("%s vectors of %s were copied to where pgvector searches them.", added, model.key)
        self._filled.add(model.key)

    def _look(self) -> None:
        """Check whether another process, or an earlier one, has done everything."""
        if not self._table.lacks(self._known):
            self._indexed = self._indexes.ready([self._known])
            self._filled.add(self._known.key)

    def _follow(self) -> None:
        pause = 0.0
        while not self._closing.wait(pause):
            try:
                self.come_in_step()
                pause = POLL_INTERVAL_SECONDS
            except Exception as error:  # noqa: BLE001 - whatever it is, there are other ways to search
                log.warning("pgvector's index is not as it should be, which is tried again: %s", error)
                pause = RETRY_INTERVAL_SECONDS
