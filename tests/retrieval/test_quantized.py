"""Bits and numbers of 8 bits find nearly what all numbers find, in less memory, and follow the store."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import StorageFailed
from rag_assistant.retrieval.indexes import quantized, vector_search
from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.retrieval.indexes.quantized import CANDIDATES, QuantizedIndex
from rag_assistant.retrieval.indexes.rows_in_memory import ROWS_AT_ONCE
from rag_assistant.retrieval.indexes.vector_search import VectorSpace
from rag_assistant.storage.documents.scope import ChunksInScope
from rag_assistant.storage.id_ranges import IdRanges

Rows = NDArray[np.float32]

COUNT, DIMENSION, NEAREST = 20_000, 384, 100
TOPICS = 200
COMMON = 3.0


def vectors(count: int, dimension: int = DIMENSION, seed: int = 1) -> Rows:
    """Return vectors as models make them: about some topics, and with something that all have in common."""
    random = np.random.default_rng(seed)
    topics = np.random.default_rng(0).standard_normal((TOPICS, dimension)) + COMMON * np.ones(dimension)
    rows = topics[random.integers(0, TOPICS, count)] + random.standard_normal((count, dimension))
    made: Rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return made


class Store:
    """Vectors by their chunks, and what was read of them."""

    def __init__(self, rows: Rows) -> None:
        self.kept = dict(enumerate(rows, 1))
        self.read: list[int] = []
        self.deleted = 0

    def version(self, _embedder: str = "") -> tuple[int, int]:
        return len(self.kept) + self.deleted, self.deleted

    def delete(self, *chunk_ids: int) -> None:
        for chunk_id in chunk_ids:
            del self.kept[chunk_id]
        self.deleted += len(chunk_ids)

    def vectors_after(self, _embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        assert type(chunk_id) is int, "a driver takes no number of NumPy's"
        chosen = [one for one in self.embedded_ids() if one > chunk_id][:limit]
        self.read += chosen
        return [(one, self.kept[one].tobytes()) for one in chosen]

    def embedded_ids(self, _embedder: str = "") -> list[int]:
        return sorted(self.kept)


class Part(ChunksInScope):
    """Some of them."""

    def __init__(self, *ranges: tuple[int, int]) -> None:
        self.ids = IdRanges.of(ranges)


def filled(store: Store, dimension: int = DIMENSION) -> QuantizedIndex:
    index = QuantizedIndex(store, "test", dimension)
    index.refresh(store.version())
    return index


def found(index: QuantizedIndex | ExactIndex, vector: Rows, within: ChunksInScope | None = None) -> list[int]:
    return [chunk_id for chunk_id, _ in index.search(vector, NEAREST, within)]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return vectors(COUNT)


@pytest.fixture(scope="module")
def index(rows: Rows) -> QuantizedIndex:
    return filled(Store(rows))


@pytest.mark.parametrize("within", [None, Part((1, 9001), (10_001, 15_001))], ids=["everywhere", "in a part"])
def test_it_finds_nearly_all_of_the_nearest(index: QuantizedIndex, rows: Rows, within: Part | None) -> None:
    exact = ExactIndex(Store(rows), "test", DIMENSION)
    exact.refresh((COUNT, 0))
    shares = [
        len(set(found(index, one, within)) & set(found(exact, one, within))) / NEAREST for one in vectors(20, seed=2)
    ]
    assert np.mean(shares) > 0.95


def test_how_far_a_vector_is_from_what_all_have_in_common_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some models' vectors all point about the same way, so that what they share says little."""
    monkeypatch.setattr(quantized, "CANDIDATES", 1000)
    random = np.random.default_rng(3)
    own = vectors(COUNT + 20) - vectors(COUNT).mean(axis=0)
    made = np.ones(DIMENSION) / DIMENSION**0.5 + own * random.uniform(0.2, 0.8, (COUNT + 20, 1))
    made = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    index = filled(Store(made[:COUNT]))
    exact = ExactIndex(Store(made[:COUNT]), "test", DIMENSION)
    exact.refresh((COUNT, 0))
    shares = [len(set(found(index, one)) & set(found(exact, one))) / NEAREST for one in made[COUNT:]]
    assert np.mean(shares) > 0.95


def test_it_tells_cosines_to_two_thousandths(index: QuantizedIndex, rows: Rows) -> None:
    (question,) = vectors(1, seed=2)
    hits = index.search(question, NEAREST)
    assert [cosine for _, cosine in hits] == sorted((cosine for _, cosine in hits), reverse=True)
    for chunk_id, cosine in hits:
        assert cosine == pytest.approx(float(rows[chunk_id - 1] @ question), abs=0.002)


def test_in_a_small_part_every_row_is_multiplied(index: QuantizedIndex, rows: Rows) -> None:
    part = Part((5, 25), (CANDIDATES, CANDIDATES + 10))
    (question,) = vectors(1, seed=2)
    assert sorted(found(index, question, part)) == [*range(5, 25), *range(CANDIDATES, CANDIDATES + 10)]
    assert found(index, question, Part()) == []


@pytest.mark.parametrize("dimension", [50, 64, 100])
def test_vectors_may_have_any_number_of_numbers(dimension: int) -> None:
    rows = vectors(CANDIDATES + 500, dimension)
    index = filled(Store(rows), dimension)
    assert [found(index, rows[row])[0] for row in range(0, len(rows), 500)] == list(range(1, len(rows) + 1, 500))


def test_it_takes_a_third_of_the_memory_of_all_numbers(rows: Rows) -> None:
    store = Store(rows)
    tracemalloc.start()
    try:
        index = filled(store)
        store.read.clear()
        in_use, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found(index, rows[0])) == NEAREST
    assert in_use < COUNT * DIMENSION * 4 / 3 + DIMENSION * DIMENSION * 4 + COUNT * 50


def test_alike_vectors_are_found_though_all_are_as_near() -> None:
    index = filled(Store(np.repeat(vectors(1), 10_000, axis=0)))
    assert len(set(found(index, vectors(1)[0]))) == NEAREST


class TestFollowing:
    """What was embedded or deleted since is there or gone, and no vector is read twice."""

    @pytest.fixture
    def store(self) -> Store:
        return Store(vectors(5 * ROWS_AT_ONCE))

    @pytest.fixture
    def index(self, store: Store) -> Iterator[QuantizedIndex]:
        index = filled(store)
        store.read.clear()
        yield index
        index.refresh(store.version())
        for chunk_id in range(1, 6 * ROWS_AT_ONCE, 150):
            best = found(index, store.kept.get(chunk_id, vectors(1)[0]))[0]
            assert best == chunk_id or chunk_id not in store.kept
        held = index._rows.held()[0].tolist()
        assert held == store.embedded_ids()

    def test_later_ones_alone_are_read(self, index: QuantizedIndex, store: Store) -> None:
        store.kept |= {5 * ROWS_AT_ONCE + 1 + number: row for number, row in enumerate(vectors(10, seed=3))}
        index.refresh(store.version())
        assert store.read == list(range(5 * ROWS_AT_ONCE + 1, 5 * ROWS_AT_ONCE + 11))

    def test_a_deletion_reads_none(self, index: QuantizedIndex, store: Store) -> None:
        store.delete(*range(300, 900), 5 * ROWS_AT_ONCE)
        index.refresh(store.version())
        assert store.read == []

    def test_who_comes_late_with_an_older_version_reads_none(
        self, index: QuantizedIndex, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = store.version()
        store.delete(300)
        index.refresh(store.version())
        monkeypatch.setattr(store, "embedded_ids", None)
        index.refresh(before)
        monkeypatch.undo()
        assert store.read == []

    def test_some_with_smaller_ids_are_read_with_those_beside_them(self, index: QuantizedIndex, store: Store) -> None:
        late = {one: store.kept[one] for one in (7, *range(1500, 1600), 4000)}
        store.delete(*late)
        index.refresh(store.version())
        store.kept |= late
        index.refresh(store.version())
        assert set(late) <= set(store.read)
        assert len(store.read) <= 3 * ROWS_AT_ONCE

    def test_a_store_that_fails_in_between_is_asked_for_the_rest(
        self, index: QuantizedIndex, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        late = {one: store.kept[one] for one in (5, 2500)}
        store.delete(*late)
        index.refresh(store.version())
        store.kept |= late
        read = store.vectors_after

        def once(embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
            if chunk_id > 2000 and chunk_id < 4000:
                raise StorageFailed("The disk is on fire.")
            return read(embedder, chunk_id, limit)

        with monkeypatch.context() as patched:
            patched.setattr(store, "vectors_after", once)
            with pytest.raises(StorageFailed):
                index.refresh(store.version())

    def test_deleted_and_kept_at_once(self, index: QuantizedIndex, store: Store) -> None:
        store.delete(*range(1, 100))
        store.kept |= {5 * ROWS_AT_ONCE + 1 + number: row for number, row in enumerate(vectors(200, seed=3))}
        index.refresh(store.version())
        assert len(store.read) == 200

    def test_whoever_searches_meanwhile_goes_on_with_what_was_there(self, index: QuantizedIndex, store: Store) -> None:
        before = index._rows.held()
        copies = [column.copy() for column in before]
        store.delete(*range(1, 2000, 3))
        store.kept |= {6 * ROWS_AT_ONCE + number: row for number, row in enumerate(vectors(2000, seed=4))}
        index.refresh(store.version())
        assert all(np.array_equal(now, then) for now, then in zip(before, copies, strict=True))


class Away:
    """No index beside this process."""

    from_chunks = 10**9


def test_a_library_that_grows_is_searched_by_bits_from_some_size_on(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "QUANTIZED_FROM", 5000)
    store = Store(rows[:4000])
    known = KnownEmbedder("test", {}, DIMENSION, None, True, (0, 0))
    space = VectorSpace(store, known, Away())  # type: ignore[arg-type]
    assert space.search(rows[7], NEAREST, store.version())[0][0] == 8
    assert isinstance(space._in_memory, ExactIndex)
    store.kept |= dict(enumerate(rows[4000:6000], 4001))
    assert space.search(rows[5500], NEAREST, store.version())[0][0] == 5501
    assert isinstance(space._in_memory, QuantizedIndex)
