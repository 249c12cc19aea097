"""Exact vector search with NumPy: used while the index is unavailable, and in small parts of the library."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit

if TYPE_CHECKING:
    from rag_assistant.storage.documents.embeddings import EmbeddingStore
    from rag_assistant.storage.documents.scope import ChunksInScope

Ids = NDArray[np.int64]
ROWS_AT_ONCE = 1000


class ExactIndex:
    """All vectors of one embedding model in a matrix, read on first use; those of a scope from SQL."""

    def __init__(self, store: EmbeddingStore, embedder: str, dimension: int) -> None:
        self._store, self._embedder, self._dimension = store, embedder, dimension
        self._lock = threading.Lock()
        self.release()

    def release(self) -> None:
        """Release the matrix."""
        self._version = (0, 0)
        self._matrix: tuple[Ids, Vectors] = np.empty(0, np.int64), np.empty((0, self._dimension), np.float32)

    def search(
        self, vectors: Sequence[Vectors], limit: int, version: tuple[int, int], within: ChunksInScope | None = None
    ) -> list[list[Hit]]:
        """Return for each vector up to ``limit`` chunk ids with their cosine, as of a ``version`` of the store."""
        if within is not None:
            ids, rows = as_matrix(self._store.vectors_within(self._embedder, within), self._dimension)
        else:
            ids, rows = self._as_of(version)
        return [nearest(ids, rows @ vector, limit) for vector in vectors]

    def _as_of(self, version: tuple[int, int]) -> tuple[Ids, Vectors]:
        with self._lock:
            if version != self._version:
                count = version[0] - version[1]
                if version[1] != self._version[1]:
                    self.release()
                self._append(count)
                if len(self._matrix[0]) < count:  # Later ones may have smaller ids.
                    self.release()
                    self._append(count)
                self._version = version
            return self._matrix

    def _append(self, count: int) -> None:
        """Read what has larger ids, about ``count`` in all: a matrix made of parts would need its memory twice."""
        (old_ids, old_rows), end = self._matrix, len(self._matrix[0])
        ids, rows = np.empty(max(count, end), np.int64), np.empty((max(count, end), self._dimension), np.float32)
        ids[:end], rows[:end], last = old_ids, old_rows, int(old_ids[-1]) if end else 0
        while batch := self._store.vectors_after(self._embedder, last, ROWS_AT_ONCE):
            last = batch[-1][0]
            some, vectors = as_matrix(batch, self._dimension)
            if end + len(some) > len(ids):  # Some were added meanwhile.
                ids, rows = np.concatenate([ids[:end], some]), np.concatenate([rows[:end], vectors])
            ids[end : end + len(some)], rows[end : end + len(some)] = some, vectors
            end += len(some)
        self._matrix = ids[:end], rows[:end]


def as_matrix(rows: list[tuple[int, bytes]], dimension: int) -> tuple[Ids, Vectors]:
    """Return the ids and vectors of some embedded chunks, without vectors of the wrong length."""
    sound = [one for one in rows if len(one[1]) == 4 * dimension]
    vectors = np.frombuffer(b"".join(vector for _, vector in sound), np.float32).reshape(-1, dimension)
    return np.array([chunk_id for chunk_id, _ in sound], np.int64), vectors


def nearest(ids: Ids, cosines: Vectors, limit: int) -> list[Hit]:
    """Return up to ``limit`` ids with their cosine, nearest first."""
    chosen = np.argsort(-cosines, kind="stable")[:limit]
    return list(zip(ids[chosen].tolist(), cosines[chosen].tolist(), strict=True))
