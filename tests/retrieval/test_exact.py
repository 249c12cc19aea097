"""The exact index holds each vector once, and has them before the first question."""

import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.scope import ChunksInScope
from rag_assistant.storage.id_ranges import IdRanges
from tests.testkit.shelf import Shelf

DIMENSION = 384


class Vectors:
    """So many vectors, made when they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.vector: Callable[[int], NDArray[np.float32]] = lambda number: np.full(DIMENSION, number, np.float32)

    def version(self, _embedder: str) -> tuple[int, int]:
        return self.count, 0

    def vectors_after(self, _embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        numbers = range(chunk_id + 1, min(chunk_id + limit, self.count) + 1)
        return [(number, self.vector(number).tobytes()) for number in numbers]

    def embedded_ids(self, _embedder: str) -> list[int]:
        return list(range(1, self.count + 1))


class Part(ChunksInScope):
    """Some of them."""

    def __init__(self, *ranges: tuple[int, int]) -> None:
        self.ids = IdRanges.of(ranges)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_vectors_are_in_memory_once_also_while_they_are_read() -> None:
    store = Vectors(10_000)
    index = ExactIndex(store, "test", DIMENSION)
    index.refresh(store.version("test"))
    in_use, peak = tracemalloc.get_traced_memory()
    once = 10_000 * DIMENSION * 4
    assert len(index._rows) == 10_000
    assert in_use < 1.2 * once
    assert peak < 1.4 * once
    tracemalloc.reset_peak()
    found = index.search(np.ones(DIMENSION, np.float32), 10, within=Part((5001, 10_001)))
    assert [number for number, _ in found] == list(range(10_000, 9_990, -1))
    assert tracemalloc.get_traced_memory()[1] < in_use + once / 10, "a scope copies no vectors"


def test_a_few_more_vectors_move_none_of_those_that_are_there() -> None:
    store = Vectors(1000)
    index = ExactIndex(store, "test", DIMENSION)
    index.refresh(store.version("test"))
    before = index._rows._room[1]
    store.count = 1100
    index.refresh(store.version("test"))
    assert index._rows._room[1] is before
    assert [number for number, _ in index.search(np.ones(DIMENSION, np.float32), 3)] == [1100, 1099, 1098]


def test_the_first_question_reads_no_vectors(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss", "boats float")
    shelf.vectors = type(shelf.vectors)(shelf.embeddings, shelf.embedders, shelf.vectors._open_index)
    shelf.vectors.warm_up()
    monkeypatch.setattr(shelf.embeddings, "vectors_after", None)
    assert len(shelf.nearest("geese")) == 2


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), max_size=8))
def test_in_a_part_it_finds_the_nearest_of_that_part(gaps_and_lengths: list[tuple[int, int]]) -> None:
    store = Vectors(200)
    rows = np.random.default_rng(1).standard_normal((200, DIMENSION)).astype(np.float32)
    store.vector = lambda number: rows[number - 1]
    index = ExactIndex(store, "test", DIMENSION)
    index.refresh(store.version("test"))
    ranges, end = [], 1
    for gap, length in gaps_and_lengths:
        ranges.append((end + gap, end + gap + length))
        end += gap + length
    part = {number for first, last in ranges for number in range(first, last)}
    nearest = [hit for hit in index.search(rows[0], 200) if hit[0] in part][:10]
    found = index.search(rows[0], 10, Part(*ranges))
    assert [number for number, _ in found] == [number for number, _ in nearest]
    assert np.allclose([cosine for _, cosine in found], [cosine for _, cosine in nearest], rtol=0, atol=1e-4)
