"""Chroma for real, in its own process: in step with SQL, killed, broken, and away."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.retrieval.indexes import chroma
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.scope import ChunksInScope, IdRanges
from tests.web.conftest import until

SECONDS = 60.0
KNOWN = KnownEmbedder("test", {}, 384, None, True, (0, 0))


class Store(EmbeddingStore):
    """The embeddings as SQL would hold them."""

    def __init__(self) -> None:
        self.rows: dict[int, bytes] = {}
        self.added = self.deleted = 0

    def add(self, *chunk_ids: int) -> None:
        """Keep a random vector for each id."""
        for chunk_id in chunk_ids:
            vector = np.random.default_rng(chunk_id).normal(size=384).astype(np.float32)
            self.rows[chunk_id] = (vector / np.linalg.norm(vector)).tobytes()
        self.added += len(chunk_ids)

    def delete(self, chunk_id: int) -> None:
        """Forget one."""
        del self.rows[chunk_id]
        self.deleted += 1

    def version(self, embedder: str) -> tuple[int, int]:
        return self.added, self.deleted

    def vectors_after(self, embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        return [(number, self.rows[number]) for number in sorted(self.rows) if number > chunk_id][:limit]

    def vectors_within(self, embedder: str, within: ChunksInScope) -> list[tuple[int, bytes]]:
        return [(number, self.rows[number]) for number in within.ids.all().tolist() if number in self.rows]

    def embedded_ids(self, embedder: str) -> list[int]:
        return sorted(self.rows)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and follow without delay."""
    monkeypatch.setattr(chroma, "START_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(chroma, "POLL_INTERVAL_SECONDS", 0.2)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def index(store: Store, tmp_path: Path) -> Iterator[ChromaIndex]:
    made = ChromaIndex(store, KNOWN, None, tmp_path / "chroma")
    yield made
    made.close()


def finds(index: ChromaIndex, store: Store, chunk_id: int) -> Callable[[], bool]:
    """Tell whether the index, in step with the store, finds a chunk by its own vector."""
    vector = np.random.default_rng(chunk_id).normal(size=384).astype(np.float32)
    vector /= np.linalg.norm(vector)

    def found() -> bool:
        try:
            (hits,) = index.search([vector], 1, store.version("e"))
        except IndexUnavailable:
            return False
        return hits[0][0] == chunk_id and abs(hits[0][1] - 1) < 0.001

    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ChromaIndex, Store]]:
    """An index in step with 3,000 chunks, for the tests that do not harm it: to start Chroma takes seconds."""
    store = Store()
    store.add(*range(10, 3010))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chroma, "START_DELAY_SECONDS", 0.0)
        patch.setattr(chroma, "POLL_INTERVAL_SECONDS", 0.2)
        made = ChromaIndex(store, KNOWN, None, tmp_path_factory.mktemp("running") / "chroma")
        with pytest.raises(IndexUnavailable):
            made.search([np.ones(384, np.float32)], 1, store.version("e"))
        made.start()
        until(finds(made, store, 3009), SECONDS)
        yield made, store
        made.close()


class Part(ChunksInScope):
    """Chunks from one to another, the last not included."""

    def __init__(self, first: int, last: int) -> None:
        self.ids = IdRanges.of([(first, last)])


def test_in_a_part_it_finds_the_nearest_of_that_part(running: tuple[ChromaIndex, Store]) -> None:
    index, store = running
    exact, version = ExactIndex(store, "test", 384), store.version("e")
    asked = np.frombuffer(store.rows[17], np.float32)
    for part in (Part(10, 1510), Part(1510, 3010)):
        found = {chunk_id for chunk_id, _ in index.search([asked], 20, version, part)[0]}
        assert len(found & {chunk_id for chunk_id, _ in exact.search([asked], 20, version, part)[0]}) >= 18
    with pytest.raises(IndexUnavailable):
        index.search([asked], 20, version, Part(10, 110))


def test_it_follows_additions_and_deletions(running: tuple[ChromaIndex, Store]) -> None:
    index, store = running
    assert index.state == "ready"
    store.add(4000)
    until(finds(index, store, 4000), SECONDS)
    store.add(5)  # a smaller id that came later
    until(finds(index, store, 5), SECONDS)
    store.delete(3009)
    until(finds(index, store, 3008), SECONDS)
    assert not finds(index, store, 3009)()


def test_what_is_embedded_while_it_is_behind_is_found_at_once(running: tuple[ChromaIndex, Store]) -> None:
    index, store = running
    index._closing.set()  # It follows no longer.
    store.add(*range(5000, 5010))
    assert finds(index, store, 5005)()
    store.delete(5005)
    with pytest.raises(IndexUnavailable):
        index.search([np.ones(384, np.float32)], 1, store.version("e"))


def found_of_the_nearest(index: ChromaIndex, store: Store) -> float:
    """Return how much of the exact answer is found; random vectors are the hardest to find."""
    rows = np.frombuffer(b"".join(store.rows.values()), np.float32).reshape(-1, 384)
    asked = np.random.default_rng(0).normal(size=(20, 384)).astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    hundredth = -np.partition(-(rows @ asked.T), 99, axis=0)[99]
    found = index.search(list(asked), 100, store.version("e"))
    near = [[cosine > least - 1e-4 for _, cosine in hits] for hits, least in zip(found, hundredth, strict=True)]
    return float(np.mean(near))


@pytest.mark.long
def test_it_looks_further_than_chroma_does_by_default(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(*range(1, 5001))
    found = []
    for ef_search in (100, chroma.EF_SEARCH):
        monkeypatch.setattr(chroma, "EF_SEARCH", ef_search)
        index = ChromaIndex(store, KNOWN, None, tmp_path / f"chroma-{ef_search}")
        try:
            index.start()
            until(finds(index, store, 5000), SECONDS)
            found.append(found_of_the_nearest(index, store))
        finally:
            index.close()
    assert found[0] < 0.85
    assert found[1] > 0.92


@pytest.mark.long  # Any process that is killed is started again: runtime/test_supervised_process.py.
def test_it_survives_being_killed(index: ChromaIndex, store: Store) -> None:
    store.add(*range(10, 30))
    index.start()
    until(finds(index, store, 20), SECONDS)
    killed = index.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    store.add(3000)
    until(finds(index, store, 3000), SECONDS)
    assert index.pid != killed
    assert finds(index, store, 11)()


@pytest.mark.long
def test_a_broken_folder_is_put_aside_and_rebuilt(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "chroma"
    folder.mkdir()
    (folder / "chroma.sqlite3").write_bytes(b"this is no database" * 1000)
    store.add(1, 2, 3)
    index = ChromaIndex(store, KNOWN, None, folder)
    index.start()
    try:
        until(finds(index, store, 2), SECONDS)
        assert (tmp_path / "chroma-broken" / "chroma.sqlite3").exists()
    finally:
        index.close()


def test_a_server_that_is_not_there_leaves_search_to_the_exact_index(store: Store, tmp_path: Path) -> None:
    store.add(1)
    index = ChromaIndex(store, KNOWN, "http://127.0.0.1:9", tmp_path / "chroma")
    index.start()
    try:
        until(lambda: index.problem is not None, SECONDS)
        assert index.state == "behind"
        with pytest.raises(IndexUnavailable):
            index.search([np.ones(384, np.float32)], 1, store.version("e"))
    finally:
        index.close()


def test_what_many_searches_notice_at_once_is_one_failure(store: Store, tmp_path: Path) -> None:
    class Away:
        def query(self, **_: object) -> None:
            meeting.wait()
            raise ConnectionResetError("away")

    searchers = 8
    meeting = threading.Barrier(searchers)
    (tmp_path / "chroma").mkdir()
    index = ChromaIndex(store, KNOWN, None, tmp_path / "chroma")
    index._collection, index._in_step_with = Away(), (1, 0)

    def search(_: int) -> bool:
        with pytest.raises(IndexUnavailable):
            index.search([np.ones(384, np.float32)], 1, (1, 0))
        return True

    with ThreadPoolExecutor(searchers) as pool:
        assert all(pool.map(search, range(searchers)))
    assert (tmp_path / "chroma").exists(), "one failure is no broken folder"
    assert not (tmp_path / "chroma-broken").exists()
