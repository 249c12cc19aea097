"""Exact vector search: every embedded chunk in one matrix in memory.

Up to some ten thousand chunks nothing is faster, and it is always right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.rows_in_memory import RowsInMemory, VectorStore, nearest

if TYPE_CHECKING:
    from rag_assistant.storage.documents.scope import ChunksInScope
    from rag_assistant.storage.id_ranges import IdRanges

# To leave out fewer rows than this takes longer than to multiply them as well.
MIN_GAP = 16


class ExactIndex:
    """All vectors of one embedding model."""

    def __init__(self, store: VectorStore, embedder: str, dimension: int) -> None:
        self._rows = RowsInMemory(store, embedder, dimension, lambda vectors: (vectors,))

    def refresh(self, version: tuple[int, int]) -> None:
        """Take over what was embedded and deleted up to a ``version`` of the store."""
        self._rows.refresh(version)

    def search(self, vector: Vectors, limit: int, within: ChunksInScope | None = None) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their cosine, the nearest first; with ``within``, only of those."""
        ids, rows = self._rows.held()
        if within is None:
            return nearest(ids, rows @ vector, limit)
        places = within.ids.places_in(ids)
        chosen = places.all()
        return nearest(ids[chosen], _cosines(rows, vector, places)[chosen], limit)


def _cosines(rows: Vectors, vector: Vectors, places: IdRanges) -> Vectors:
    """Return the cosines of the rows in some places; in the others, anything may stand."""
    cosines = np.empty(len(rows), np.float32)
    for start, end in places.joined(MIN_GAP):
        np.matmul(rows[start:end], vector, out=cosines[start:end])
    return cosines
