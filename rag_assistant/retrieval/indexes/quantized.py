"""Vector search in large libraries: a bit for each number says who comes near, 8 bits for each who is nearest.

A vector is turned by a random rotation, after which no direction stands out, and each of its numbers becomes a bit:
above or below the centre. The share of bits in which two vectors differ is about their angle seen from there (Charikar
2002), and with their lengths it tells how far they are apart (Gao and Long 2024). The nearest of all rows by that are
multiplied with the question, as numbers of 8 bits each. There is nothing to build, and among a million vectors it finds
more than Chroma's graph, for less (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.rows_in_memory import Columns, Ids, RowsInMemory, VectorStore, nearest

if TYPE_CHECKING:
    from rag_assistant.storage.documents.scope import ChunksInScope

# How many rows are multiplied: of 100,000 vectors this finds .98 of the 100 nearest, of a million .96.
CANDIDATES = 4000
# What is made for so many rows on the way stays in the processor's cache.
ROWS_AT_ONCE = 1 << 16
# To leave out fewer rows than this takes longer than to compare them as well.
MIN_GAP = 512
BITS = 64
LARGEST = 127
# Squared distances in so many parts of 1: the largest, seen from a centre that may be anywhere, is 16.
PARTS = 4000

Words = NDArray[np.uint64]
Distances = NDArray[np.uint16]


class QuantizedIndex:
    """All vectors of one embedding model, in 1.17 bytes for each of their numbers."""

    def __init__(self, store: VectorStore, embedder: str, dimension: int) -> None:
        random = np.random.default_rng(0).standard_normal((dimension, dimension))
        self._rotation = np.linalg.qr(random).Q.astype(np.float32)
        self._centre: Vectors = np.zeros(dimension, np.float32)
        self._cosines = np.cos(np.linspace(0, np.pi, dimension + 1)).astype(np.float32)
        self._rows = RowsInMemory(store, embedder, dimension, self._encode)

    def refresh(self, version: tuple[int, int]) -> None:
        """Take over what was embedded and deleted up to a ``version`` of the store."""
        self._rows.refresh(version)

    def search(self, vector: Vectors, limit: int, within: ChunksInScope | None = None) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their cosine, the nearest first; with ``within``, only of those.

        A cosine is right to .002.
        """
        ids, scales, numbers, lengths, *words = self._rows.held()
        turned = vector @ self._rotation
        if within is None:
            near = _nearest(self._distances(turned, lengths, words, [(0, len(ids))]))
        else:
            places = within.ids.places_in(ids)
            near = places.all()
            if len(near) > CANDIDATES:
                near = near[_nearest(self._distances(turned, lengths, words, places.joined(MIN_GAP))[near])]
        cosines = numbers[near].astype(np.float32) @ turned * scales[near] + self._centre @ turned
        return nearest(ids[near], cosines, limit)

    def _encode(self, vectors: Vectors) -> Columns:
        """Return what is kept of some vectors: the scale of their numbers, these, their lengths, 64 bits in a column.

        All are taken from the centre, which is that of the first vectors.
        """
        turned = vectors @ self._rotation
        if len(turned) and not self._centre.any():
            self._centre = turned.mean(axis=0)
        own = turned - self._centre
        scales = np.maximum(np.abs(own).max(axis=1, initial=0), np.finfo(np.float32).tiny) / LARGEST
        numbers = np.rint(own / scales[:, None]).astype(np.int8)
        return scales, numbers, np.linalg.norm(own, axis=1), *_bits(own).T

    def _distances(
        self, turned: Vectors, lengths: Vectors, words: list[Words], spans: Iterable[tuple[int, int]]
    ) -> Distances:
        """Return about how far each row is from a vector, squared, in ``PARTS``; outside of some spans, anything.

        By the law of cosines, from the two lengths and the angle that their bits tell.
        """
        own = turned - self._centre
        asked, length = _bits(own), float(np.linalg.norm(own))
        twice = 2 * length * self._cosines
        distances = np.empty(len(lengths), np.uint16)
        for first, last in spans:
            for start in range(first, last, ROWS_AT_ONCE):
                rows = slice(start, min(start + ROWS_AT_ONCE, last))
                differing = np.zeros(rows.stop - start, np.uint16)
                for column, word in zip(words, asked, strict=True):
                    differing += np.bitwise_count(column[rows] ^ word)
                distances[rows] = ((lengths[rows] - twice[differing]) * lengths[rows] + length**2) * PARTS
        return distances


def _bits(own: Vectors) -> Words:
    """Return the bits of some vectors, or of one: 64 in a number."""
    bits = np.packbits(own > 0, axis=-1)
    missing = -bits.shape[-1] % (BITS // 8)
    return np.pad(bits, [*[(0, 0)] * (bits.ndim - 1), (0, missing)]).view(np.uint64)


def _nearest(distances: Distances) -> Ids:
    """Return where the smallest distances are, as many as are multiplied, or some more that are as near."""
    farthest = np.searchsorted(np.cumsum(np.bincount(distances)), CANDIDATES)
    return np.flatnonzero(distances <= farthest)[: 2 * CANDIDATES]
