"""The exact index holds each vector once, and has them before the first question."""

import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.scope import ChunksInScope
from testkit.shelf import Shelf

DIMENSION = 384


class Vectors:
    """So many vectors, made when they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count

    def version(self, _embedder: str) -> tuple[int, int]:
        return self.count, 0

    def vectors_after(self, _embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        numbers = range(chunk_id + 1, min(chunk_id + limit, self.count) + 1)
        return [(number, np.full(DIMENSION, number, np.float32).tobytes()) for number in numbers]


class Half(ChunksInScope):
    """The second half of them."""

    def __init__(self) -> None:
        pass

    few, size = None, 5_000

    def among(self, chunk_ids: Sequence[int]) -> set[int]:
        return {number for number in chunk_ids if number > 5_000}


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
    assert len(index) == 10_000
    assert in_use < 1.2 * once
    assert peak < 1.4 * once
    tracemalloc.reset_peak()
    found = index.search(np.ones(DIMENSION, np.float32), 10, within=Half())
    assert [number for number, _ in found] == list(range(10_000, 9_990, -1))
    assert tracemalloc.get_traced_memory()[1] < in_use + once / 10, "a scope copies no vectors"


def test_a_few_more_vectors_move_none_of_those_that_are_there() -> None:
    store = Vectors(1000)
    index = ExactIndex(store, "test", DIMENSION)
    index.refresh(store.version("test"))
    before = index._room[1]
    store.count = 1100
    index.refresh(store.version("test"))
    assert index._room[1] is before
    assert [number for number, _ in index.search(np.ones(DIMENSION, np.float32), 3)] == [1100, 1099, 1098]


def test_the_first_question_reads_no_vectors(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss", "boats float")
    shelf.vectors = type(shelf.vectors)(shelf.embeddings, shelf.embedders, shelf.vectors._open_index)
    shelf.vectors.warm_up()
    monkeypatch.setattr(shelf.embeddings, "vectors_after", None)
    assert len(shelf.nearest("geese")) == 2
