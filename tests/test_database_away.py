"""The disk is full, or the database away, when an answer ends: who waits gets the whole answer once that is over."""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from tests.conftest import administration
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

WORDS = ["So ", "it ", "is."]
# Several attempts to store the end.
SECONDS = [2, pytest.param(10, marks=pytest.mark.long)]
UNLIMITED = resource.RLIM_INFINITY

Away = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def server(tmp_path: Path, stub: StubModel, server_fork: ServerFork) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path, server_fork.launch, OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model")
    yield server
    server.kill()


@pytest.mark.long
@pytest.mark.parametrize("seconds", SECONDS)
def test_an_answer_that_ends_while_the_disk_is_full_is_stored_whole(
    server: ServerProcess, stub: StubModel, seconds: float
) -> None:
    @contextmanager
    def full() -> Iterator[None]:
        assert server.process is not None
        pid = server.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, UNLIMITED))
        yield
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))

    answer_across(server, stub, full, seconds)


@pytest.mark.long
@pytest.mark.parametrize("seconds", SECONDS)
def test_an_answer_that_ends_while_postgresql_is_away_is_stored_whole(
    server: ServerProcess, stub: StubModel, seconds: float, postgres_server: Any, postgres_database: str
) -> None:
    name = make_url(postgres_database).database
    server.environment["DATABASE_URL"] = postgres_database

    @contextmanager
    def away() -> Iterator[None]:
        with administration(postgres_server) as connection:
            connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            yield
            connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')

    answer_across(server, stub, away, seconds)


def answer_across(server: ServerProcess, stub: StubModel, away: Away, seconds: float) -> None:
    """Let an answer end in the middle of such a time, and look at what is stored of it."""
    end = threading.Event()
    stub.default = Reply(pieces=[*WORDS, ""], gate=end, gate_at=len(WORDS))
    server.start()
    stream = server.stream("Why?").read(until_length=len("".join(WORDS)))
    with away():
        end.set()
        time.sleep(seconds)
        assert server.call("POST", "/api/conversations", {})[0] in (503, 507)  # Away, or full.
    stream.read()
    assert stream.last is not None
    assert stream.last[0] == "end"
    turn = server.call("GET", f"/api/turns/{stream.turn_id}")[1]
    assert (turn["status"], turn["answer"], turn.get("error")) == ("completed", "So it is.", None)
    assert turn["usage"]["completion_tokens"] == 4
