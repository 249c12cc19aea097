"""Search vectors exactly and through Chroma, in libraries of several sizes: from where on is the index worth it?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from rag_assistant.errors import IndexUnavailable
from rag_assistant.retrieval.chroma import ChromaIndex
from rag_assistant.retrieval.embedding import Vectors
from rag_assistant.retrieval.exact import ExactIndex
from rag_assistant.retrieval.search import CANDIDATES

SIZES = (1_000, 10_000, 30_000, 60_000, 100_000)
DIMENSION = 384
QUERIES = 50


class Store:
    """Random vectors of length 1 with the ids from 1 on."""

    def __init__(self, size: int) -> None:
        rows = np.random.default_rng(1).standard_normal((size, DIMENSION)).astype(np.float32)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def version(self, _embedder: str) -> tuple[int, int]:
        """Return how many were added and deleted."""
        return len(self.rows), 0

    def vectors_after(self, _embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` vectors with an id above ``chunk_id``."""
        last = min(len(self.rows), chunk_id + limit)
        return [(number, self.rows[number - 1].tobytes()) for number in range(chunk_id + 1, last + 1)]


def main() -> None:
    """Print the time of a search for each size, and how much of the exact answer Chroma finds."""
    print("| chunks | exact ms | Chroma ms | found by both | seconds to fill Chroma |\n|---|---|---|---|---|")
    for size in SIZES:
        store = Store(size)
        exact = ExactIndex(store, "bench", DIMENSION)
        exact.refresh(store.version("bench"))
        with tempfile.TemporaryDirectory() as folder:
            chroma = ChromaIndex(store, "bench", None, Path(folder) / "chroma")
            try:
                began = time.monotonic()
                chroma.start()
                wait_until_filled(chroma, store)
                filled = time.monotonic() - began
                exact_ms, wanted = measure(store, partial(exact.search, limit=CANDIDATES))
                search = partial(chroma.search, limit=CANDIDATES, version=store.version("bench"))
                chroma_ms, found = measure(store, search)
            finally:
                chroma.close()
        shared = sum(len(a & b) for a, b in zip(wanted, found, strict=True)) / sum(map(len, wanted))
        print(f"| {size:,} | {exact_ms:.1f} | {chroma_ms:.1f} | {shared:.0%} | {filled:.0f} |", flush=True)


def wait_until_filled(chroma: ChromaIndex, store: Store) -> None:
    """Wait until Chroma answers for all vectors."""
    while True:
        try:
            chroma.search(store.rows[0], 1, store.version("bench"))
        except IndexUnavailable:
            time.sleep(0.2)
        else:
            return


def measure(store: Store, search: Callable[[Vectors], list[tuple[int, float]]]) -> tuple[float, list[set[int]]]:
    """Return the milliseconds that a search takes, and what each found."""
    queries = store.rows[:QUERIES]
    search(queries[0])
    began = time.monotonic()
    found = [{number for number, _ in search(vector)} for vector in queries]
    return (time.monotonic() - began) * 1000 / len(queries), found
