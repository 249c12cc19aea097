"""Webs and workers on one PostgreSQL database and one folder of files: who does what, and what waits for whom."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerEnded, ServerProcess
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import until

DRAIN_SECONDS = 2
LEASE_SECONDS = 4
Start = Callable[..., ServerProcess]


@pytest.fixture
def stub() -> Iterator[StubModel]:
    model = StubModel(Reply("By hissing."))
    yield model
    model.close()


@pytest.fixture
def start(tmp_path: Path, stub: StubModel, server_fork: ServerFork, postgres_database: str) -> Iterator[Start]:
    """Starts a server in a role, with a folder of its own, in which that of the files is everybody's."""
    shared = tmp_path / "shared" / "uploads"
    shared.mkdir(parents=True)
    common = {
        "DATABASE_URL": postgres_database,
        "OPENAI_BASE_URL": stub.url,
        "OPENAI_MODEL": "stub-model",
        "LEASE_SECONDS": str(LEASE_SECONDS),
    }
    made: list[ServerProcess] = []

    def start_one(role: str, **environment: str) -> ServerProcess:
        folder = tmp_path / f"{role}{len(made)}"
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "uploads").symlink_to(shared)
        server = ServerProcess(folder, server_fork.launch, **common | environment, ROLE=role)
        made.append(server)
        server.start("/readyz")
        return server

    yield start_one
    for server in made:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def upload(server: ServerProcess, paragraphs: int = 1) -> int:
    """Send a document and return its id."""
    text = "\n\n".join(f"Paragraph {n}: geese greet the keeper. " + "He feeds them. " * 60 for n in range(paragraphs))
    return server.upload(f"{paragraphs}.txt", text)


@pytest.mark.usefixtures("postgres_server")
def test_a_web_without_a_worker_answers_and_says_for_what_documents_wait(start: Start) -> None:
    web = start("web")
    document = f"/api/documents/{upload(web)}"
    assert web.call("GET", "/readyz")[1]["parts"]["worker"] == "missing"
    assert web.call("POST", "/api/query", {"question": "How?"})[1]["status"] == "completed"
    waiting = web.call("GET", document)[1]
    assert (waiting["state"], waiting["reason"]) == ("queued", "No worker is running; this continues when one does.")

    worker = start("worker")
    until(lambda: web.call("GET", document)[1]["state"] == "ready")
    assert web.call("GET", document)[1]["reason"] is None
    until(lambda: web.call("GET", "/readyz")[1]["parts"]["worker"] == "ready")

    status, said = worker.call("GET", "/api/documents")
    assert (status, said["error"]["message"]) == (
        404,
        "This process is a worker: it serves only /healthz, /readyz and /metrics.",
    )
    assert worker.send("GET", "/healthz", None, "text/plain")[0] == 200


@pytest.mark.long
@pytest.mark.usefixtures("postgres_server")
def test_a_worker_that_is_told_to_end_hands_over_at_once(start: Start) -> None:
    # Never taken for dead: what the other one takes over was handed over.
    web, ending, other = (start(role, LEASE_SECONDS="600") for role in ("web", "worker", "worker"))
    assert ending.process is not None
    assert other.process is not None
    os.killpg(other.process.pid, signal.SIGSTOP)
    ids = [upload(web, count) for count in (30, 40)]
    until(lambda: web.call("GET", f"/api/documents/{ids[0]}")[1]["state"] in ("embedding", "ready"))
    os.killpg(other.process.pid, signal.SIGCONT)
    ending.terminate()
    web.wait_for_documents()
    assert {web.call("GET", f"/api/documents/{one}")[1]["state"] for one in ids} == {"ready"}


@pytest.mark.long
@pytest.mark.usefixtures("postgres_server")
def test_who_drains_says_so_and_takes_questions_until_nobody_sends_any(start: Start) -> None:
    web = start("web", DRAIN_SECONDS=str(DRAIN_SECONDS))
    assert web.process is not None
    began = time.monotonic()
    # systemd tells all processes of a unit, and the first of them tells its worker again.
    os.killpg(web.process.pid, signal.SIGTERM)
    until(lambda: web.call("GET", "/readyz")[1]["parts"]["server"] == "ending")
    assert web.call("GET", "/readyz")[0] == 503
    assert web.call("POST", "/api/query", {"question": "How?"})[1]["status"] == "completed"
    web.process.wait(20)
    assert time.monotonic() - began >= DRAIN_SECONDS


@pytest.mark.parametrize("role", ["web", "worker"])
def test_a_part_of_the_roles_needs_a_database_to_share(role: str, tmp_path: Path, server_fork: ServerFork) -> None:
    server = ServerProcess(tmp_path, server_fork.launch, ROLE=role)
    with pytest.raises(ServerEnded, match=f'role is "{role}", which needs a database that other processes share'):
        server.start()
