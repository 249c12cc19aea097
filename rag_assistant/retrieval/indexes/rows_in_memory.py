"""What an index in memory keeps of each embedded chunk, and how that follows SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit

Ids = NDArray[np.int64]
# Each has one row for each chunk.
Columns = tuple[NDArray[Any], ...]

ROWS_AT_ONCE = 1000
# Room for so many more, as a share of those that are there: it is no memory until it is used.
SPARE = 8


class VectorStore(Protocol):
    """Where the embeddings are kept for good."""

    def version(self, embedder: str) -> tuple[int, int]:
        """Return two numbers that move with every vector that is kept, and every one that is dropped."""

    def vectors_after(self, embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` embedded chunks with an id above ``chunk_id``, in the order of their ids."""

    def embedded_ids(self, embedder: str) -> list[int]:
        """Return the ids of all embedded chunks, the smallest first."""


class RowsInMemory:
    """The rows of one embedding model's vectors, as they were at the last ``refresh``, in the order of their ids.

    ``encode`` makes of some vectors (rows x dimension) what is kept of them. The vector of a chunk never changes, so
    that a chunk which is here is not read again.
    """

    def __init__(self, store: VectorStore, embedder: str, dimension: int, encode: Callable[[Vectors], Columns]) -> None:
        self._store = store
        self._embedder = embedder
        self._dimension = dimension
        self._encode = encode
        self._lock = threading.Lock()
        self._version: tuple[int, int] | None = None
        self._room: Columns = (np.empty(0, np.int64), *encode(np.empty((0, dimension), np.float32)))
        self._held = self._room

    def __len__(self) -> int:
        return len(self._held[0])

    def held(self) -> Columns:
        """Return the ids, and the columns that ``encode`` made of their vectors."""
        with self._lock:
            return self._held

    def refresh(self, version: tuple[int, int]) -> None:
        """Take over what was embedded and deleted up to a ``version`` of the store, if that is not there already."""
        if version == self._version:
            return
        with self._lock:
            added, deleted = version
            if self._version is not None and added <= self._version[0] and deleted <= self._version[1]:
                return  # Another thread has seen a later one meanwhile.
            total = added - deleted
            dropped = self._version is not None and deleted != self._version[1]
            if not dropped:
                self._append(int(self._held[0][-1]) if len(self) else 0, total)
            if dropped or len(self) < total:  # Some that came later may have smaller ids.
                self._compare(total)
            self._version = version

    def _append(self, chunk_id: int, total: int) -> None:
        """Read every vector of a chunk above ``chunk_id``, behind those that are here.

        ``total`` is how many there should be: they are read to where they stay, so that none is there twice.
        """
        while batch := self._store.vectors_after(self._embedder, chunk_id, ROWS_AT_ONCE):
            chunk_id = batch[-1][0]
            self._add(batch, total)

    def _compare(self, total: int) -> None:
        """Drop what the store has no longer, and read what is missing."""
        ids = np.array(self._store.embedded_ids(self._embedder), np.int64)
        self._move(np.flatnonzero(np.isin(self._held[0], ids, assume_unique=True)), total)
        missing = np.setdiff1d(ids, self._held[0], assume_unique=True)
        if len(missing):
            try:
                self._add_some(missing, total)
            finally:
                self._move(np.argsort(self._held[0]), total)

    def _add_some(self, missing: Ids, total: int) -> None:
        while len(missing) and (batch := self._store.vectors_after(self._embedder, int(missing[0]) - 1, ROWS_AT_ONCE)):
            wanted = set(missing[:ROWS_AT_ONCE].tolist())
            self._add([one for one in batch if one[0] in wanted], total)
            missing = missing[missing > batch[-1][0]]

    def _add(self, batch: list[tuple[int, bytes]], total: int) -> None:
        sound = [one for one in batch if len(one[1]) == 4 * self._dimension]
        vectors = np.frombuffer(b"".join(vector for _, vector in sound), np.float32).reshape(-1, self._dimension)
        start, end = len(self), len(self) + len(sound)
        if end > len(self._room[0]):
            self._move(np.arange(start), max(total, end))
        for room, rows in zip(self._room, (np.array([one for one, _ in sound]), *self._encode(vectors)), strict=True):
            room[start:end] = rows
        self._held = tuple(room[:end] for room in self._room)

    def _move(self, kept: Ids, total: int) -> None:
        """Move the rows of some places, in that order, to where there is room for ``total`` and some more.

        Who searches now goes on with the rows that were there.
        """
        size = max(total, len(kept)) + total // SPARE
        room = tuple(np.empty((size, *column.shape[1:]), column.dtype) for column in self._held)
        for column, there in zip(self._held, room, strict=True):
            np.take(column, kept, axis=0, out=there[: len(kept)], mode="clip")  # Another mode copies them once more.
        self._room, self._held = room, tuple(there[: len(kept)] for there in room)


def nearest(ids: Ids, cosines: Vectors, limit: int) -> list[Hit]:
    """Return up to ``limit`` ids with their cosine, the nearest first."""
    if not len(ids):
        return []
    limit = min(limit, len(ids))
    chosen = np.argpartition(-cosines, limit - 1)[:limit]
    chosen = chosen[np.argsort(-cosines[chosen], kind="stable")]
    return list(zip(ids[chosen].tolist(), cosines[chosen].tolist(), strict=True))
