"""Vector search: Chroma where the library is large enough for it to be the faster one, the exact index otherwise."""

from __future__ import annotations

import logging
from collections.abc import Collection

from rag_assistant.errors import IndexUnavailable
from rag_assistant.retrieval.chroma import ChromaIndex
from rag_assistant.retrieval.embedding import Vectors
from rag_assistant.retrieval.exact import ExactIndex, VectorStore

log = logging.getLogger(__name__)


class VectorSearch:
    """Searches vectors. Whatever Chroma does, there is an answer."""

    def __init__(self, store: VectorStore, exact: ExactIndex, chroma: ChromaIndex, from_chunks: int) -> None:
        self._store = store
        self._exact = exact
        self._chroma = chroma
        self._from_chunks = from_chunks

    def search(self, vector: Vectors, limit: int, chunk_ids: Collection[int] | None = None) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids with their cosine, the nearest first; with ``chunk_ids``, only of those."""
        version = self._store.library_version()
        embedded = version[0] - version[1]
        if chunk_ids is None and embedded >= self._from_chunks:
            self._chroma.start()
            try:
                return self._chroma.search(vector, limit, version)
            except IndexUnavailable as error:
                log.debug("Exact search answers: %s", error)
        self._exact.refresh(version)
        return self._exact.search(vector, limit, chunk_ids)
