"""Work that goes on behind the pages: queues that outlive the process, and a thread of it for each. huey lives here.

The queues of an installation lie in a SQLite file of its own, whatever the database is: they say only what this
process is to look at. What is to be done, and who does it, stands in the documents' table: whoever takes a
document there has it alone, so a queue may be lost, or say a thing twice.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from threading import Lock, RLock
from typing import Any

# huey loads PostgreSQL's driver wherever it is installed: 0.25 s of each start.
_DRIVER = sys.modules.setdefault("psycopg", None)  # type: ignore[arg-type]
from huey import Huey, storage  # noqa: E402
from huey.consumer import Consumer  # noqa: E402
from huey.registry import Message  # noqa: E402
from huey.serializer import Serializer  # noqa: E402

if _DRIVER is None:
    del sys.modules["psycopg"]

log = logging.getLogger(__name__)
logging.getLogger("huey").setLevel(logging.WARNING)

MIN_WAIT_SECONDS = 0.02
MAX_WAIT_SECONDS = 0.25
STOP_TIMEOUT_SECONDS = 10.0

# Of two queues in one file, which may begin it anew: the one that is at it fills the other.
_beginning_anew = RLock()

# What does the work, given a document's id (or 0).
Work = Callable[[int], None]


class JobQueue:
    """One queue with one thread: a piece of work at a time, the higher priority first, then in the order of coming.

    ``path`` is the file of the queues.
    """

    def __init__(self, name: str, path: Path) -> None:
        self._huey = _open_in_file(name, path)
        self._tasks: dict[str, Any] = {}
        self._consumer: Consumer | None = None

    def offer(self, kind: str, work: Work, priority: int = 0) -> None:
        """Say how a kind of work is done."""
        self._tasks[kind] = self._huey.task(name=kind, priority=priority)(work)

    def add(self, kind: str, document_id: int = 0, delay_seconds: float = 0.0) -> None:
        """Queue a piece of work, to be done when its turn comes, or not before a delay is over."""
        if delay_seconds:
            self._tasks[kind].schedule((document_id,), delay=delay_seconds)
        else:
            self._tasks[kind](document_id)

    def forget(self) -> None:
        """Empty the queue."""
        self._huey.storage.flush_queue()
        self._huey.storage.flush_schedule()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many pieces of work wait for their turn, and how many for a later moment."""
        return self._huey.storage.queue_size(), self._huey.storage.schedule_size()

    @property
    def busy(self) -> bool:
        """Whether a piece of work waits, those for later included, or is at hand in this process."""
        return self._huey.busy

    def start(self, refill: Callable[[], None] = lambda: None) -> None:
        """Begin to work, in a thread of this process. ``refill`` is called when the file had to be begun anew."""
        self._huey.storage.refill = refill
        self._consumer = Consumer(
            self._huey,
            workers=1,
            periodic=False,
            initial_delay=MIN_WAIT_SECONDS,
            max_delay=MAX_WAIT_SECONDS,
            scheduler_interval=1,
            check_worker_health=False,
        )
        # Not Consumer.start(): that takes the signals of the process, which belong to the server.
        for thread in self._threads():
            thread.start()

    def stop(self) -> None:
        """Take nothing more from the queue, and wait for the piece of work at hand."""
        if self._consumer is not None:
            self._consumer.stop_flag.set()
            for thread in self._threads():
                thread.join(STOP_TIMEOUT_SECONDS)
            self._consumer = None
        self._huey.storage.close()

    def _threads(self) -> list[Any]:
        if self._consumer is None:
            return []
        return [self._consumer.scheduler, *(thread for _, thread in self._consumer.worker_threads)]


class _Queue(Huey):  # type: ignore[misc] # huey has no types
    """huey's queue for one worker; a piece of work moves on in one step, so it is never out of sight in between."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._moving = Lock()
        self._at_hand = False

    @property
    def busy(self) -> bool:
        with self._moving:
            return bool(self._at_hand or self.storage.queue_size() or self.storage.schedule_size())

    def dequeue(self) -> Any:
        """Hand the next piece to the worker, which asks again only when it is done."""
        with self._moving:
            task = super().dequeue()
            self._at_hand = task is not None
        return task

    def read_schedule(self, timestamp: datetime | None = None) -> list[Any]:
        """Put what has become due into the queue; nothing is left for the scheduler to put there."""
        with self._moving:
            for task in super().read_schedule(timestamp):
                self.enqueue(task)
        return []


class _BegunAnew(Exception):
    """The file was damaged, and another one has taken its place."""


class _QueueFile(storage.SqliteStorage):  # type: ignore[misc] # huey has no types
    """A file of queues; one that is damaged or taken away while it is in use is begun anew."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.refill: Callable[[], None] = lambda: None
        self._inode = 0
        super().__init__(*args, **options)

    def _create_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._create_connection()
        self._inode = Path(self.filename).stat().st_ino
        return connection

    @contextmanager
    def db(self, *args: Any, **options: Any) -> Iterator[sqlite3.Cursor]:
        """Give a cursor. Raises _BegunAnew."""
        try:
            with super().db(*args, **options) as cursor:
                yield cursor
        except sqlite3.DatabaseError as error:
            if not self._is_lost(error):
                raise
            with _beginning_anew:
                self.close()
                _put_aside_if_damaged(Path(self.filename))
                self.initialize_schema()
                self.refill()
            raise _BegunAnew from error

    def sql(self, *args: Any, **options: Any) -> Any:
        """Execute a statement, in the new file if the old one is damaged."""
        try:
            return super().sql(*args, **options)
        except _BegunAnew:
            return super().sql(*args, **options)

    def _is_lost(self, error: sqlite3.DatabaseError) -> bool:
        """Tell whether the file is damaged or was taken away; errors of other kinds are such as a disk that is full."""
        if type(error) is sqlite3.DatabaseError or "no such table" in str(error):
            return True
        path = Path(self.filename)
        return not path.exists() or path.stat().st_ino != self._inode


class _AsJson(Serializer):  # type: ignore[misc] # huey has no types
    """Keeps a piece of work as JSON: what is read from a database never becomes code, as it could with pickle."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps(data._asdict() | {"eta": data.eta.isoformat() if data.eta else None}).encode()

    def _deserialize(self, data: bytes) -> Message:
        message = json.loads(bytes(data))
        eta = datetime.fromisoformat(message["eta"]) if message["eta"] else None
        return Message(**message | {"args": tuple(message["args"]), "eta": eta})


_OPTIONS: dict[str, Any] = {"results": False, "serializer": _AsJson()}
BUSY_TIMEOUT_SECONDS = 20


def _open_in_file(name: str, path: Path) -> _Queue:
    """Return the queue; what a damaged file held is queued again from the truth."""
    _put_aside_if_damaged(path)
    # No WAL: a server and the command line both write, and SQLite before 3.51.3 has a bug there.
    file = {"filename": str(path), "journal_mode": "delete", "timeout": BUSY_TIMEOUT_SECONDS}
    return _Queue(name, storage_class=_QueueFile, **file, **_OPTIONS)


def _put_aside_if_damaged(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS)) as connection:
        try:
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            damage = str(error)
    if damage != "ok":
        log.warning("The queue's file %s cannot be read and is begun anew: %s", path, damage)
        path.replace(path.with_suffix(".broken"))
