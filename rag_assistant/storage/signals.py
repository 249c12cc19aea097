"""Wake other processes on the same database when an answer has new text, ends, or is to be stopped.

The rows are the truth, and everybody looks at them every half second: a signal, which PostgreSQL sends with NOTIFY,
only says that it is worth looking at once. None arrive on SQLite, and behind a pooler in transaction mode.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, func, select

from rag_assistant.records.errors import StorageFailed
from rag_assistant.storage.database import Database

log = logging.getLogger(__name__)

CHANNEL = "rag_assistant"
LOOK_INTERVAL_SECONDS = 0.5
IDS_IN_ONE_SIGNAL = 500


class Signals:
    """Sends signals about turns and receives them. ``has_others`` returns whether there is anybody to signal."""

    def __init__(self, database: Database, has_others: Callable[[], bool]) -> None:
        self._database = database
        self._has_others = has_others
        self._lock = threading.Lock()
        self._waiting: dict[int, list[threading.Event]] = {}
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop: Callable[[int], None] = lambda _: None
        self._look: Callable[[], None] = lambda: None
        self._work: Callable[[], None] = lambda: None

    def start(self, stop: Callable[[int], None], look: Callable[[], None], work: Callable[[], None]) -> None:
        """Listen: ``stop`` ends a turn answered here, ``look`` finds turns to stop, ``work`` documents that wait."""
        self._stop, self._look, self._work = stop, look, work
        self._thread = threading.Thread(target=self._look_on, name="signals", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(LOOK_INTERVAL_SECONDS * 2)

    def tell_text(self, connection: Connection, turn_ids: set[int]) -> None:
        """Signal, once a transaction is committed, that it has new text of some answers."""
        if not self._database.is_sqlite and self._has_others():
            some = sorted(turn_ids)
            for start in range(0, len(some), IDS_IN_ONE_SIGNAL):
                _notify(connection, f"text {' '.join(map(str, some[start : start + IDS_IN_ONE_SIGNAL]))}")

    def tell_end(self, turn_id: int) -> None:
        """Signal at once that an answer has ended."""
        if self._has_others():
            self._tell(f"text {turn_id}")

    def tell_stop(self, turn_id: int) -> None:
        """Signal at once that an answer is to be stopped."""
        self._tell(f"stop {turn_id}")

    def tell_work(self) -> None:
        """Signal at once that a document is waiting."""
        self._tell("work")

    @contextmanager
    def awaiting(self, turn_id: int) -> Iterator[Callable[[], None]]:
        """Give a function that waits for a signal about a turn, up to a timeout."""
        news = threading.Event()
        with self._lock:
            self._waiting.setdefault(turn_id, []).append(news)

        def wait() -> None:
            news.wait(LOOK_INTERVAL_SECONDS)
            news.clear()

        try:
            yield wait
        finally:
            with self._lock:
                self._waiting[turn_id].remove(news)
                if not self._waiting[turn_id]:
                    del self._waiting[turn_id]

    # --- sending

    def _tell(self, payload: str) -> None:
        if self._database.is_sqlite:
            return
        try:
            with self._database.write() as connection:
                _notify(connection, payload)
        except StorageFailed as error:
            log.debug("Other servers were not notified (%s); they poll: %s", payload, error)

    # --- receiving

    def _look_on(self) -> None:
        while not self._closing.wait(LOOK_INTERVAL_SECONDS):
            self._look_around()
            try:
                if not self._database.is_sqlite:
                    self._listen()
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing is heard
                log.debug("The connection for PostgreSQL's signals broke: %s", error)

    def _listen(self) -> None:
        """Listen until the connection breaks."""
        import psycopg

        with psycopg.connect(self._database.connection_string, autocommit=True) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            while not self._closing.is_set():
                for heard in connection.notifies(timeout=LOOK_INTERVAL_SECONDS, stop_after=1):
                    self._take(heard.payload)
                self._look_around()

    def _take(self, payload: str) -> None:
        kind, *values = payload.split()
        if kind == "stop":
            self._stop(int(values[0]))
        elif kind == "work":
            self._look_around(self._work)
        elif kind == "text":
            for turn_id in map(int, values):
                with self._lock:
                    waiting = list(self._waiting.get(turn_id, ()))
                for news in waiting:
                    news.set()

    def _look_around(self, look: Callable[[], None] | None = None) -> None:
        try:
            (look or self._look)()
        except StorageFailed as error:
            log.debug("Checking for pending work failed: %s", error)


def _notify(connection: Connection, payload: str) -> None:
    connection.execute(select(func.pg_notify(CHANNEL, payload)))
