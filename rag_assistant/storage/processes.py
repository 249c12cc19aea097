"""The processes that share a database: which are alive, the settings that they share, and how they wake each other.

What one of them works on is claimed for as long as it is registered here. On PostgreSQL each process increments a
counter in its row, and the others check whether it moves; clocks are never compared. On SQLite all processes are on
this machine, and the locks of the data folder tell which are alive.

The rows are the truth, and everybody looks at them every half second: a signal, which PostgreSQL sends with NOTIFY when
an answer has new text, ends, or is to be stopped, only says that it is worth looking at once. None arrive on SQLite,
and behind a pooler in transaction mode.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import CLOCK_BOOTTIME, clock_gettime, monotonic, sleep
from typing import Any, Literal

from msgspec import structs
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, true, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records.errors import SettingsChanged, SettingsError, StorageFailed
from rag_assistant.settings.live import SharedValues
from rag_assistant.settings.schema import conflict, differences
from rag_assistant.storage.database import Database, Store
from rag_assistant.storage.tables import page_settings, processes

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
BEAT_INTERVAL_SECONDS = 2.0
# A process that couldn't reach the database for so long hasn't seen the others' counters either.
MAX_PAUSE_SECONDS = 6.0
# Of signals.
CHANNEL = "rag_assistant"
LOOK_INTERVAL_SECONDS = 0.5
IDS_IN_ONE_SIGNAL = 500

# A server does everything; a web process doesn't process documents, and a worker does only that.
ProcessKind = Literal["server", "web", "worker", "command"]
WORKING: tuple[ProcessKind, ...] = ("server", "worker")
is_working = processes.c.kind.in_(WORKING)


def since_boot() -> float:
    """Return a time in seconds that keeps running while the machine sleeps."""
    return clock_gettime(CLOCK_BOOTTIME)


def is_nobodys(owner: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Return the condition that the process in a column is no longer registered, or that there is none."""
    return owner.is_(None) | owner.not_in(select(processes.c.id))


class Leases(Store):
    """Registers this process, compares its ``settings`` with those of other servers, and removes those that died."""

    def __init__(self, database: Database, installation: str, settings: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__(database)
        self._installation = installation
        self._settings = settings
        self._kind: ProcessKind = "server"
        self._id: str | None = None
        # For each other process its counter, and when this value was first seen.
        self._seen: dict[str, tuple[int, float]] = {}
        self._kinds: set[str] = set()
        self._looked = 0.0
        self._heard = 0.0

    @property
    def has_others(self) -> bool:
        """Whether other processes were alive at the last check."""
        return bool(self._seen)

    @property
    def has_worker(self) -> bool:
        """Whether a process that works on documents was alive at the last check."""
        return self._kind in WORKING or not self._kinds.isdisjoint(WORKING)

    @property
    def is_first_worker(self) -> bool:
        """Whether this process does what only one of those that share the database must do."""
        return self._values(select(func.min(processes.c.id)).where(is_working)) == [self._id]

    @property
    def is_held(self) -> bool:
        """Whether this process has renewed its lease in time, so that nobody has declared it dead; it may have hung."""
        return self._database.is_sqlite or since_boot() - self._heard < LEASE_SECONDS

    def enter(self, kind: ProcessKind) -> str:
        """Register this process under a new name and return it.

        Raises SettingsError if it is a server whose settings don't agree with the others'. A dead one among them is
        recognised by its silence, which takes the time of a lease.
        """
        self._kind = kind
        end = monotonic() + LEASE_SECONDS + 2 * BEAT_INTERVAL_SECONDS
        while True:
            with self._database.one_at_a_time("enter"):
                others = self._settings_of_others()
                problem = conflict(self._settings(), others) if kind != "command" else None
                if problem is None:
                    name, began = uuid.uuid4().hex, since_boot()
                    own = {"id": name, "installation": self._installation, "kind": kind, "beats": 0}
                    self._commit(insert(processes).values(own | {"settings": self._settings()}))
                    self._id, self._heard = name, began
                    break
            if monotonic() > end:
                raise SettingsError(problem)
            sleep(BEAT_INTERVAL_SECONDS)
            self.bury()
        for sentence in differences(self._settings(), others) if kind != "command" else ():
            log.warning("Servers on one database should have the same settings: %s", sentence)
        self.bury()  # To see who is alive.
        return name

    def differences(self) -> list[str]:
        """Return a sentence for each setting in which another server differs; what it changes is seen with its beat."""
        return differences(self._settings(), self._settings_of_others())

    def _settings_of_others(self) -> list[dict[str, Any]]:
        """Return the settings of the other servers on PostgreSQL."""
        if self._database.is_sqlite:
            return []
        others = processes.c.kind != "command", processes.c.installation != self._installation
        return self._values(select(processes.c.settings).where(*others))

    def leave(self) -> None:
        """Unregister this process, so that nobody waits for it."""
        if self._id is not None:
            self._commit(delete(processes).where(processes.c.id == self._id))
            self._id = None

    def forget(self, *, commands: bool) -> None:
        """Remove this installation's commands, or servers, which a lock shows to be dead.

        SQLite's file may have come from another installation, by a backup.
        """
        ours = true() if self._database.is_sqlite else processes.c.installation == self._installation
        dead = processes.c.kind == "command" if commands else processes.c.kind != "command"
        self._commit(delete(processes).where(ours, dead))

    def beat(self) -> str | None:
        """Renew the lease. If the others have declared this process dead, register it again and return its new name."""
        began = since_boot()
        values = {"beats": processes.c.beats + 1, "settings": self._settings()}
        if self._commit(update(processes).where(processes.c.id == self._id).values(values)):
            self._heard = began
            return None
        log.error("This process missed its heartbeat for %g seconds; its work was released.", LEASE_SECONDS)
        return self.enter(self._kind)

    def bury(self) -> int:
        """Remove other processes whose counter hasn't moved for the time of a lease, and return their number."""
        others = self._rows(select(processes).where(processes.c.id != self._id))
        self._kinds = {other["kind"] for other in others}
        now = monotonic()
        if now - self._looked > MAX_PAUSE_SECONDS:
            self._seen = {}
        self._looked = now
        seen = {other["id"]: (other["beats"], now) for other in others}
        for name, before in self._seen.items():
            if name in seen and seen[name][0] == before[0]:
                seen[name] = before
        self._seen, buried = seen, 0
        for name, (beats, since) in seen.items():
            silent = processes.c.id == name, processes.c.beats == beats
            if now - since >= LEASE_SECONDS and self._commit(delete(processes).where(*silent)):
                buried += 1
                silence = "Process %s has been silent for %g seconds; others take over its work."
                log.warning(silence, name, LEASE_SECONDS)
        return buried


class PageSettings(Store):
    """Keeps the last change of settings on the page."""

    def read(self) -> SharedValues:
        newest = select(page_settings).order_by(page_settings.c.version.desc()).limit(1)
        return next(iter(self._records(newest, SharedValues)), SharedValues())

    def write(self, changed: SharedValues) -> None:
        """Replace the version before. Raises SettingsChanged if it is no longer the last one."""
        try:
            with self._database.write() as connection:
                connection.execute(insert(page_settings).values(structs.asdict(changed)))
                connection.execute(delete(page_settings).where(page_settings.c.version < changed.version))
        except IntegrityError as error:
            raise SettingsChanged("The settings were changed at the same moment; nothing was saved.") from error


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
