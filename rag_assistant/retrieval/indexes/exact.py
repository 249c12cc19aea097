"""Exact vector search: every embedded chunk in one matrix in memory, which follows what SQL holds.

Up to some ten thousand chunks nothing is faster, it has no file that can break, and it is always right.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit

if TYPE_CHECKING:
    from rag_assistant.storage.documents.scope import ChunksInScope
    from rag_assistant.storage.id_ranges import IdRanges

ROWS_AT_ONCE = 1000
# Room for so many more, as a share of those that are there: it is no memory until it is used.
SPARE = 8
# To leave out fewer rows than this takes longer than to multiply them as well.
MIN_GAP = 16


class VectorStore(Protocol):
    """Where the embeddings are kept for good."""

    def version(self, embedder: str) -> tuple[int, int]:
        """Return two numbers that move with every vector that is kept, and every one that is dropped."""

    def vectors_after(self, embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` embedded chunks with an id above ``chunk_id``, in the order of their ids."""


class ExactIndex:
    """All vectors of one embedder, as they were at the last ``refresh``."""

    def __init__(self, store: VectorStore, embedder: str, dimension: int) -> None:
        self._store = store
        self._embedder = embedder
        self._dimension = dimension
        self._lock = threading.Lock()
        self._version: tuple[int, int] | None = None
        self._room: tuple[NDArray[np.int64], Vectors] = np.empty(0, np.int64), np.empty((0, dimension), np.float32)
        self._ids, self._rows = self._room

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, vector: Vectors, limit: int, within: ChunksInScope | None = None) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their cosine, the nearest first; with ``within``, only of those."""
        with self._lock:
            ids, rows = self._ids, self._rows
        if within is None:
            return _nearest(ids, rows @ vector, limit)
        places = within.ids.places_in(ids)
        chosen = places.all()
        return _nearest(ids[chosen], _cosines(rows, vector, places)[chosen], limit)

    def refresh(self, version: tuple[int, int]) -> None:
        """Take over what was embedded up to a ``version`` of the store; start anew after a deletion."""
        if version == self._version:
            return
        with self._lock:
            added, deleted = version
            if self._version is None or deleted != self._version[1]:
                self._read_after(0, added - deleted)
            else:
                self._read_after(int(self._ids[-1]) if len(self._ids) else 0, added - deleted)
                if len(self._ids) < added - deleted:  # Some that came later have smaller ids.
                    self._read_after(0, added - deleted)
            self._version = version

    def _read_after(self, chunk_id: int, total: int) -> None:
        """Read every embedding of a chunk above ``chunk_id``, and keep those of the others that are here.

        ``total`` is how many there should be: they are read to where they stay, so that none is there twice.
        """
        end = int(np.searchsorted(self._ids, chunk_id, side="right"))
        if end < len(self._ids):
            self._make_room(end, total)  # Who searches now goes on with the rows that were there.
        while batch := self._store.vectors_after(self._embedder, chunk_id, ROWS_AT_ONCE):
            chunk_id = batch[-1][0]
            sound = [(number, vector) for number, vector in batch if len(vector) == 4 * self._dimension]
            if end + len(sound) > len(self._room[0]):
                self._make_room(end, max(total, end + len(sound)))
            start, end = end, end + len(sound)
            ids, rows = self._room
            ids[start:end] = [number for number, _ in sound]
            for row, (_, vector) in enumerate(sound, start):
                rows[row] = np.frombuffer(vector, np.float32)
        self._ids, self._rows = self._room[0][:end], self._room[1][:end]

    def _make_room(self, kept: int, total: int) -> None:
        """Move the first ``kept`` rows to where there is room for ``total`` and some more."""
        ids, rows = self._room
        size = total + total // SPARE
        self._room = np.empty(size, np.int64), np.empty((size, self._dimension), np.float32)
        self._room[0][:kept], self._room[1][:kept] = ids[:kept], rows[:kept]


def _cosines(rows: Vectors, vector: Vectors, places: IdRanges) -> Vectors:
    """Return the cosines of the rows in some places; in the others, anything may stand."""
    cosines = np.empty(len(rows), np.float32)
    for start, end in places.joined(MIN_GAP):
        np.matmul(rows[start:end], vector, out=cosines[start:end])
    return cosines


def _nearest(ids: NDArray[np.int64], cosines: Vectors, limit: int) -> list[Hit]:
    if not len(ids):
        return []
    limit = min(limit, len(ids))
    nearest = np.argpartition(-cosines, limit - 1)[:limit]
    nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
    return list(zip(ids[nearest].tolist(), cosines[nearest].tolist(), strict=True))
