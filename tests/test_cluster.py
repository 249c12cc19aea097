"""Two servers on one PostgreSQL database: what one of them leaves when it is killed, the other one takes over."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerEnded, ServerProcess
from tests.testkit.stub_model import Reply, StubModel

ANSWER = " ".join(f"wörd{n}" for n in range(400))
LEASE_SECONDS = 4
EMBEDDING = "rag_assistant.storage.documents.embeddings:EmbeddingStore.keep_embeddings:after:1"

pytestmark = pytest.mark.usefixtures("postgres_server")


@pytest.fixture
def stub() -> Iterator[StubModel]:
    model = StubModel(Reply(ANSWER, seconds_between=0.02))
    yield model
    model.close()


@pytest.fixture
def servers(
    tmp_path: Path, stub: StubModel, server_fork: ServerFork, postgres_database: str
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers, each with a folder of its own, not started yet."""
    environment = {
        "DATABASE_URL": postgres_database,
        "OPENAI_BASE_URL": stub.url,
        "OPENAI_MODEL": "stub-model",
        "QUERY_REWRITING": "words",
        "LEASE_SECONDS": str(LEASE_SECONDS),
    }
    made = [ServerProcess(tmp_path / name, server_fork.launch, **environment) for name in ("one", "other")]
    for server in made:
        server.data.parent.mkdir()
    yield made[0], made[1]
    for server in made:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def test_the_turn_of_a_killed_server_ends_through_another_one_with_what_was_read_of_it(
    servers: tuple[ServerProcess, ServerProcess],
) -> None:
    one, other = servers
    one.start()
    other.start()
    read = one.stream("Why?").read(30)
    assert read.turn_id is not None
    followed = other.follow(read.turn_id, 0)
    one.kill()
    read.read()
    assert followed.read().last is not None
    assert followed.last is not None
    assert followed.last[1]["status"] == "interrupted"
    kept = other.call("GET", f"/api/turns/{read.turn_id}")[1]["answer"]
    assert kept.startswith(read.text)
    assert kept == followed.text
    conversation = followed.last[1]["conversation_id"]
    with_more = other.stream("And?", conversation_id=conversation)
    assert with_more.status == 200
    with_more.close()


@pytest.mark.long  # On SQLite, tests/test_server.py kills and starts one every time.
def test_a_killed_server_that_starts_again_finds_its_turn_ended_at_once(
    servers: tuple[ServerProcess, ServerProcess],
) -> None:
    one, _ = servers
    one.start()
    read = one.stream("Why?").read(30)
    one.kill()
    read.read()
    one.start()
    assert one.call("GET", f"/api/turns/{read.turn_id}")[1]["status"] == "interrupted"


@pytest.mark.long
def test_who_hung_for_longer_than_a_lease_ends_its_answer_as_the_others_did_and_goes_on(
    servers: tuple[ServerProcess, ServerProcess], stub: StubModel
) -> None:
    one, other = servers
    one.start()
    other.start()
    read = one.stream("Why?").read(30)
    assert one.process is not None
    pause(one, signal.SIGSTOP)
    ended = wait_for_end(other, read.turn_id)
    stub.default = Reply("Well again.")
    pause(one, signal.SIGCONT)
    # The first thing that it does is to take a question, which may not be given up with what it did before.
    assert one.call("POST", "/api/query", {"question": "And now?"})[1]["answer"] == "Well again."
    read.read()
    assert read.last is not None
    assert read.last[1]["status"] == ended["status"] == "interrupted"
    assert ended["answer"].startswith(read.text)


@pytest.mark.long
def test_the_document_of_a_killed_server_becomes_ready_through_another_one(
    servers: tuple[ServerProcess, ServerProcess],
) -> None:
    one, other = servers
    one.environment["KILL_AT"] = EMBEDDING
    one.start()
    other.start()
    text = "\n\n".join(f"Paragraph {n} about geese. " + "The keeper feeds them every morning. " * 20 for n in range(40))
    path = f"/api/documents/{one.upload('a.txt', text)}"
    assert one.process is not None
    one.process.wait(30)
    before = other.call("GET", path)[1]
    assert before["state"] == "embedding"
    assert 0 < before["embedded"] < before["chunks"]
    other.wait_for_documents()
    assert other.call("GET", path)[1]["state"] == "ready"


def pause(server: ServerProcess, number: int) -> None:
    """Send a signal to a server and all that it started."""
    assert server.process is not None
    os.killpg(server.process.pid, number)


@pytest.mark.long
def test_a_server_with_another_embedding_model_does_not_start_beside_the_first(
    servers: tuple[ServerProcess, ServerProcess],
) -> None:
    one, other = servers
    one.start()
    other.environment["EMBEDDER"] = "endpoint:bge-m3"
    with pytest.raises(ServerEnded, match='Cannot start. embedder is "endpoint:bge-m3", but .* uses "builtin"'):
        other.start()
    one.kill()
    other.start()


def wait_for_end(server: ServerProcess, turn_id: int | None) -> dict[str, Any]:
    """Return a turn when it has ended."""
    end = time.monotonic() + 40
    while True:
        turn: dict[str, Any] = server.call("GET", f"/api/turns/{turn_id}")[1]
        if turn["status"] != "running":
            return turn
        assert time.monotonic() < end, server.log.read_text()
        time.sleep(0.1)
