"""The exact index finds the nearest, also in a part, and is ready before the first question."""

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from rag_assistant.records import Scope
from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.scope import ChunksInScope
from tests.testkit.shelf import KEY, Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    shelf = Shelf(database)
    shelf.embedders.configured()
    return shelf


def nearest(shelf: Shelf, index: ExactIndex, text: str, within: ChunksInScope | None = None) -> list[int]:
    (row,) = shelf.embedders.configured().embed([text])
    vector: NDArray[np.float32] = row
    return [chunk_id for chunk_id, _ in index.search([vector], 3, shelf.embeddings.version(KEY), within)[0]]


def test_it_finds_the_nearest_as_documents_come_and_go(shelf: Shelf) -> None:
    index = ExactIndex(shelf.embeddings, KEY, 384)
    assert nearest(shelf, index, "geese") == []
    geese = shelf.shelve("geese hiss", "geese eat grass", "boats float")
    assert nearest(shelf, index, "geese hiss")[0] == 1
    late, early = shelf.add("late"), shelf.add("early")
    shelf.read(late, "swans sleep")
    shelf.read(early, "ducks dive")
    shelf.embed(early)
    assert nearest(shelf, index, "ducks dive")[0] == 5
    shelf.embed(late)  # A smaller id that comes later.
    assert nearest(shelf, index, "swans sleep")[0] == 4
    shelf.documents.delete(geese.id)
    assert set(nearest(shelf, index, "geese hiss")) == {4, 5}
    index.release()
    assert set(nearest(shelf, index, "geese hiss")) == {4, 5}


class ManyVectors:
    """A store of so many vectors, the id of each in each of its numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def vectors_after(self, _embedder: str, last: int, limit: int) -> list[tuple[int, bytes]]:
        ids = range(last + 1, min(self.count, last + limit) + 1)
        return [(n, np.full(384, n, np.float32).tobytes()) for n in ids]


def test_reading_all_vectors_needs_their_memory_once() -> None:
    count = 20_000
    index = ExactIndex(ManyVectors(count), "embedder", 384)  # type: ignore[arg-type]
    tracemalloc.start()
    hits = index.search([np.full(384, 1 / 384, np.float32)], 1, (count, 0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [chunk_id for chunk_id, _ in hits[0]] == [count]
    assert peak < 1.4 * count * 384 * 4


def test_vectors_that_come_while_they_are_read_are_found() -> None:
    index = ExactIndex(ManyVectors(2_500), "embedder", 384)  # type: ignore[arg-type]
    hits = index.search([np.full(384, 1 / 384, np.float32)], 3, (1_700, 0))
    assert [chunk_id for chunk_id, _ in hits[0]] == [2_500, 2_499, 2_498]


def test_in_a_part_it_finds_the_nearest_of_that_part(shelf: Shelf) -> None:
    index = ExactIndex(shelf.embeddings, KEY, 384)
    shelf.shelve("geese hiss", "geese eat grass")
    boats = shelf.shelve("boats float", "boats sail past geese")
    within = shelf.chunks.within(Scope((boats.id,)))
    assert nearest(shelf, index, "geese", within) == [4, 3]


def test_the_first_question_reads_no_vectors(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.shelve("geese hiss", "boats float")
    shelf.vectors = type(shelf.vectors)(shelf.embeddings, shelf.embedders, shelf.vectors._open_index)
    shelf.vectors.warm_up()
    monkeypatch.setattr(shelf.embeddings, "vectors_after", None)
    assert len(shelf.nearest("geese")) == 2


def test_vectors_of_a_large_library_are_read_only_where_a_question_needs_them(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.retrieval.indexes.vector_search.MAX_READ_AT_START", 1)
    shelf.shelve("geese hiss", "boats float")
    shelf.vectors = type(shelf.vectors)(shelf.embeddings, shelf.embedders, shelf.vectors._open_index)
    read = shelf.embeddings.vectors_after
    with monkeypatch.context() as patched:
        patched.setattr(shelf.embeddings, "vectors_after", None)
        shelf.vectors.warm_up()
    assert shelf.embeddings.vectors_after == read
    assert len(shelf.nearest("geese")) == 2
