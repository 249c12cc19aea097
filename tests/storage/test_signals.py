"""Processes that wake each other: over PostgreSQL at once, and by looking where nothing is heard."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rag_assistant.storage import processes as module
from rag_assistant.storage.database import Database
from rag_assistant.storage.processes import Signals
from tests.web.conftest import until

Open = Callable[..., Signals]


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens the signals of one process after another on a PostgreSQL database."""
    url = request.getfixturevalue("postgres_database")
    with ExitStack() as stack:

        def open_signals(
            stop: Callable[[int], None] = lambda _: None,
            look: Callable[[], None] = lambda: None,
            work: Callable[[], None] = lambda: None,
        ) -> Signals:
            database = Database(url)
            signals = Signals(database, lambda: True)
            stack.callback(database.close)
            stack.callback(signals.close)
            signals.start(stop, look, work)
            return signals

        yield open_signals


def test_text_and_stop_reach_another_process_and_only_whom_they_concern(
    opened: Open, request: pytest.FixtureRequest
) -> None:
    stopped: list[int] = []
    here, there = opened(), opened(stopped.append)
    database = Database(request.getfixturevalue("postgres_database"))
    listening(request, 2)
    with there.awaiting(7), there.awaiting(8):
        with database.write() as connection:
            here.tell_text(connection, {7, 9})
        until(lambda: there._waiting[7][0].is_set())
        assert not there._waiting[8][0].is_set()
        here.tell_end(8)
        until(lambda: there._waiting[8][0].is_set())
    database.close()
    assert there._waiting == {}
    here.tell_stop(5)
    until(lambda: stopped == [5])


def test_where_nothing_is_heard_everybody_looks(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Signals, "_tell", lambda *_: None)
    monkeypatch.setattr(module, "LOOK_INTERVAL_SECONDS", 0.01)
    looked = threading.Semaphore(0)
    opened(look=looked.release)
    assert all(looked.acquire(timeout=30) for _ in range(10))


def test_a_connection_that_breaks_is_opened_again(opened: Open, request: pytest.FixtureRequest) -> None:
    opened()
    (before,) = listening(request, 1)
    database = Database(request.getfixturevalue("postgres_database"))
    with database.write() as connection:
        connection.exec_driver_sql(f"SELECT pg_terminate_backend({before})")
    database.close()
    until(lambda: listening(request, 1) != {before})


def listening(request: pytest.FixtureRequest, count: int) -> set[int]:
    """Return the connections that listen, once there are ``count``."""
    database = Database(request.getfixturevalue("postgres_database"))
    pids: set[int] = set()

    def is_full() -> bool:
        with database.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN rag_assistant'"
            )
            pids.clear()
            pids.update(found.scalars())
        return len(pids) == count

    until(is_full)
    database.close()
    return pids
