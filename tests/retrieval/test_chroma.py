"""Chroma for real, in its own process: in step with SQL, killed, broken, and away."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.retrieval.indexes import chroma, chroma_process
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.scope import ChunksInScope, IdRanges
from tests.testkit.server_process import free_port
from tests.web.conftest import until

SECONDS = 180.0
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

    def still_embedded(self, embedder: str, chunk_ids: Collection[int]) -> set[int]:
        return self.rows.keys() & chunk_ids


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and follow without delay."""
    monkeypatch.setattr(chroma, "START_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(chroma, "POLL_INTERVAL_SECONDS", 0.2)
    monkeypatch.setattr("rag_assistant.runtime.supervised_process.RESTART_BACKOFF_SECONDS", (0.05,))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def index(store: Store, tmp_path: Path) -> Iterator[ChromaIndex]:
    made = ChromaIndex(store, KNOWN, tmp_path / "chroma")
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
        made = ChromaIndex(store, KNOWN, tmp_path_factory.mktemp("running") / "chroma")
        with pytest.raises(IndexUnavailable):
            made.search([np.ones(384, np.float32)], 1, store.version("e"))
        made.start()
        until(finds(made, store, 3009), SECONDS)
        yield made, store
        made.close()


def pid_of(index: ChromaIndex) -> int | None:
    """Return the id of Chroma's process."""
    return index._chroma.process.pid


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


def test_vectors_that_vanish_or_appear_behind_our_back_are_mended(running: tuple[ChromaIndex, Store]) -> None:
    index, store = running
    request = index._request
    assert request is not None
    kept = len(store.rows)
    request("delete", ids=["17", "18"])
    stranger = np.ones((1, 384), np.float32)
    until(lambda: request("count") == kept and finds(index, store, 17)(), SECONDS)
    request("add", ids=["777777"], embeddings=stranger)
    until(lambda: request("count") == kept, SECONDS)
    assert not request("get", ids=["777777"])["ids"]


def test_vectors_that_were_exchanged_for_others_are_found_by_comparing(
    running: tuple[ChromaIndex, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, _ = running
    request = index._request
    assert request is not None
    request("add", ids=["777777"], embeddings=np.ones((1, 384), np.float32))
    request("delete", ids=["18"])
    monkeypatch.setattr(chroma, "COMPARE_INTERVAL_SECONDS", 0.0)
    until(lambda: request("get", ids=["18", "777777"])["ids"] == ["18"], SECONDS)


def test_several_vectors_are_one_request(running: tuple[ChromaIndex, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    index, store = running
    requests = []
    request = index._request
    assert request is not None

    def counted(method: str, **arguments: Any) -> Any:
        requests.append(method)
        return request(method, **arguments)

    monkeypatch.setattr(index, "_request", counted)
    vectors = [np.frombuffer(store.rows[chunk_id], np.float32) for chunk_id in (11, 12, 13)]
    found = index.search(vectors, 5, store.version("e"))
    assert [hits[0][0] for hits in found] == [11, 12, 13]
    assert requests.count("query") == 1


def test_a_vector_that_is_deleted_while_it_is_found_fails_no_search(
    running: tuple[ChromaIndex, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, store = running
    failed: list[str] = []
    request = index._request
    assert request is not None

    def failing_once(method: str, **arguments: Any) -> Any:
        if method == "query" and not failed:
            failed.append(method)
            raise chroma_process.ChromaFailed("InternalError: Error finding id")
        return request(method, **arguments)

    monkeypatch.setattr(index, "_request", failing_once)
    (hits,) = index.search([np.frombuffer(store.rows[11], np.float32)], 5, store.version("e"))
    assert failed
    assert hits[0][0] == 11


def test_a_process_that_is_held_is_waited_for_and_nothing_is_thrown_away(
    running: tuple[ChromaIndex, Store], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, store = running
    monkeypatch.setattr(chroma_process, "QUERY_TIMEOUT_SECONDS", 0.2)
    held = pid_of(index)
    assert held is not None
    os.kill(held, signal.SIGSTOP)
    try:
        until(lambda: not finds(index, store, 20)() and index.state == "slow", SECONDS)
        for _ in range(20):  # Each of them would once have counted as a sign of damage.
            assert not finds(index, store, 20)()
            time.sleep(0.05)
    finally:
        os.kill(held, signal.SIGCONT)
    until(finds(index, store, 20), SECONDS)
    assert pid_of(index) == held
    assert not list(tmp_path_factory.getbasetemp().glob("running*/chroma-broken"))


def test_what_is_embedded_while_it_is_behind_is_found_at_once(running: tuple[ChromaIndex, Store]) -> None:
    index, store = running
    index._closing.set()  # It follows no longer.
    store.add(*range(5000, 5010))
    assert finds(index, store, 5005)()
    vector = np.frombuffer(store.rows[5005], np.float32)
    nearest = [chunk_id for chunk_id, _ in index.search([vector], 100, store.version("e"))[0]]
    store.delete(5005)
    (hits,) = index.search([vector], 99, store.version("e"))
    assert [chunk_id for chunk_id, _ in hits] == nearest[1:], "a deletion makes nobody wait for the exact index"
    for chunk_id in nearest[1:60]:
        store.delete(chunk_id)
    (hits,) = index.search([vector], 20, store.version("e"))
    assert [chunk_id for chunk_id, _ in hits] == nearest[60:80]
    for chunk_id in nearest[60:]:
        store.delete(chunk_id)
    with pytest.raises(IndexUnavailable):
        index.search([vector], 10, store.version("e"))


def found_of_the_nearest(collection: Any, store: Store) -> float:
    """Return how much of the exact answer is found; random vectors are the hardest to find."""
    rows = np.frombuffer(b"".join(store.rows.values()), np.float32).reshape(-1, 384)
    collection.add(ids=[*map(str, store.rows)], embeddings=rows)
    asked = np.random.default_rng(0).normal(size=(20, 384)).astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    hundredth = -np.partition(-(rows @ asked.T), 99, axis=0)[99]
    found = collection.query(query_embeddings=list(asked), n_results=100, include=["distances"])["distances"]
    near = [[1 - one > least - 1e-4 for one in distances] for distances, least in zip(found, hundredth, strict=True)]
    return float(np.mean(near))


@pytest.mark.long
def test_it_looks_further_than_chroma_does_by_default(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chromadb import PersistentClient
    from chromadb.config import Settings

    store.add(*range(1, 5001))
    client = PersistentClient(str(tmp_path), Settings(anonymized_telemetry=False))
    own = found_of_the_nearest(chroma_process.collection_of(client, "own"), store)
    monkeypatch.setattr(chroma_process, "EF_SEARCH", 100)
    assert found_of_the_nearest(chroma_process.collection_of(client, "default"), store) < 0.85
    assert own > 0.92


def filled(store: Store, folder: Path) -> Path:
    """Return a folder with the index of a store that was closed in good order."""
    index = ChromaIndex(store, KNOWN, folder)
    index.start()
    until(finds(index, store, 20), SECONDS)
    index.close()
    return folder


def emptied(folder: Path, name: str) -> None:
    """Empty one of Chroma's files."""
    next(folder.rglob(name)).write_bytes(b"")


def overwritten(folder: Path, name: str) -> None:
    """Fill one of Chroma's files with bytes that make no sense."""
    path = next(folder.rglob(name))
    path.write_bytes(b"\xff" * path.stat().st_size)


@pytest.mark.long
@pytest.mark.parametrize(
    ("damage", "name"),
    [(overwritten, "chroma.sqlite3"), (emptied, "index_metadata.pickle"), (overwritten, "header.bin")],
)
def test_a_damaged_folder_is_put_aside_told_and_rebuilt(
    store: Store,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path, str], None],
    name: str,
) -> None:
    store.add(*range(1, 1201))  # So many that Chroma writes its own files, not only rows.
    folder = filled(store, tmp_path / "chroma")
    damage(folder, name)
    index = ChromaIndex(store, KNOWN, folder)
    states = []
    index.start()
    try:
        until(lambda: states.append(index.state) is None and finds(index, store, 20)(), SECONDS)  # type: ignore[func-returns-value]
        assert (tmp_path / "chroma-broken" / "chroma.sqlite3").exists()
        assert "damaged" in states
        assert "is damaged. It is put aside (chroma-broken) and rebuilt." in caplog.text
        assert index.state == "ready"
    finally:
        index.close()


@pytest.mark.long
@pytest.mark.parametrize(("how", "times"), [(signal.SIGKILL, 2), (signal.SIGKILL, 5), (signal.SIGSEGV, 3)])
def test_one_that_ends_again_and_again_while_it_starts_loses_nothing_and_only_a_crash_is_a_sign_of_damage(
    store: Store, tmp_path: Path, how: signal.Signals, times: int
) -> None:
    store.add(*range(10, 30))
    folder = filled(store, tmp_path / "chroma")
    index = ChromaIndex(store, KNOWN, folder)
    index.start()
    killed: set[int] = set()
    try:
        while len(killed) < times:
            pid = pid_of(index)
            if pid is not None and pid not in killed:
                killed.add(pid)
                time.sleep(0.3 * len(killed))
                os.kill(pid, how)
        until(finds(index, store, 20), SECONDS)
        assert (tmp_path / "chroma-broken").exists() == (how == signal.SIGSEGV)
    finally:
        index.close()


@pytest.mark.long
def test_a_folder_that_another_process_holds_is_opened_once_it_is_free(store: Store, tmp_path: Path) -> None:
    store.add(*range(10, 30))
    first, second = (ChromaIndex(store, KNOWN, tmp_path / "chroma") for _ in range(2))
    first.start()
    try:
        until(finds(first, store, 20), SECONDS)
        second.start()
        until(lambda: f"chroma is in use by process {pid_of(first)}." in (second.problem or ""), SECONDS)
        assert second.state in ("failed", "starting")
        assert finds(first, store, 20)()
        first.close()
        until(finds(second, store, 20), SECONDS)
    finally:
        first.close()
        second.close()


def test_nobody_else_can_reach_it(running: tuple[ChromaIndex, Store]) -> None:
    index, _ = running
    process = psutil.Process(pid_of(index))
    assert not [one for one in process.net_connections("all") if one.status == psutil.CONN_LISTEN or one.laddr]
    if os.geteuid() != 0:
        pytest.skip("Only root can try it as another user.")
    tried = subprocess.run(["cat", f"/proc/{pid_of(index)}/fd/0"], user="nobody", capture_output=True, check=False)
    assert b"Permission denied" in tried.stderr


@pytest.mark.long
def test_a_server_of_ones_own_gets_the_headers_and_is_mended_too(store: Store, tmp_path: Path) -> None:
    from chromadb import HttpClient
    from chromadb.config import Settings

    store.add(*range(10, 30))
    port = free_port()
    program = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(tmp_path / "theirs")]
    with subprocess.Popen([*program, "--port", str(port)], stdout=subprocess.DEVNULL) as server:
        index = ChromaIndex(store, KNOWN, tmp_path / "ours", f"http://127.0.0.1:{port}", {"x-chroma-token": "abc"})
        index.start()
        try:
            until(finds(index, store, 20), SECONDS)
            client = HttpClient("127.0.0.1", port, settings=Settings(anonymized_telemetry=False))
            client.get_collection("chunks-test", embedding_function=None).delete(ids=["20"])
            until(lambda: not finds(index, store, 20)(), SECONDS)
            until(finds(index, store, 20), SECONDS)
            client.delete_collection("chunks-test")
            until(lambda: not finds(index, store, 20)(), SECONDS)
            until(finds(index, store, 20), SECONDS)
            assert not (tmp_path / "ours").exists()
        finally:
            index.close()
            server.kill()


@pytest.mark.long
def test_a_server_that_is_not_there_leaves_search_to_the_exact_index(store: Store, tmp_path: Path) -> None:
    store.add(1)
    index = ChromaIndex(store, KNOWN, tmp_path / "chroma", "http://127.0.0.1:9")
    index.start()
    try:
        until(lambda: index.state == "failed", SECONDS)
        until(lambda: "connect" in (index.problem or ""), SECONDS)
        with pytest.raises(IndexUnavailable):
            index.search([np.ones(384, np.float32)], 1, store.version("e"))
    finally:
        index.close()


def test_what_many_searches_notice_at_once_is_one_failure(store: Store, tmp_path: Path) -> None:
    def away(_: str, **__: object) -> None:
        meeting.wait()
        raise ConnectionResetError("away")

    searchers = 8
    meeting = threading.Barrier(searchers)
    (tmp_path / "chroma").mkdir()
    index = ChromaIndex(store, KNOWN, tmp_path / "chroma")
    index._request, index._in_step_with = away, (1, 0)

    def search(_: int) -> bool:
        with pytest.raises(IndexUnavailable):
            index.search([np.ones(384, np.float32)], 1, (1, 0))
        return True

    with ThreadPoolExecutor(searchers) as pool:
        assert all(pool.map(search, range(searchers)))
    assert (tmp_path / "chroma").exists(), "one failure is no broken folder"
    assert not (tmp_path / "chroma-broken").exists()
