"""Background work: a queue with a thread, a small task that is repeated, health checks, and a clock for what is due.

The documents table holds what is to be done, and by whom: documents are claimed there, so a queue may be lost with its
process, or contain a job twice.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

log = logging.getLogger(__name__)

STOP_TIMEOUT_SECONDS = 10.0
# How long to wait for a beat that hangs.
HEARTBEAT_TIMEOUT_SECONDS = 5.0

# Does the work, given a document's id (or 0).
Work = Callable[[int], None]


class JobQueue:
    """One queue with one thread: one job at a time, by priority, then people in turn, then first in, first out.

    ``owner_of`` returns whose job it is: nobody waits for all jobs of somebody else, who has added many.
    """

    def __init__(self, name: str, owner_of: Callable[[int], int | None] = lambda _: None) -> None:
        self._name = name
        self._owner_of = owner_of
        # The round of the last job that was taken, and of each owner's last job.
        self._round = 0
        self._rounds: dict[int | None, int] = {}
        self._kinds: dict[str, tuple[int, Work]] = {}
        self._changed = threading.Condition()
        self._order = itertools.count()
        self._now: list[tuple[int, int, int, str, int]] = []
        self._later: list[tuple[float, int, str, int]] = []
        self._at_hand = False
        self._stopping = False
        self._thread: threading.Thread | None = None

    def offer(self, kind: str, work: Work, priority: int = 0) -> None:
        """Register the function for a kind of work."""
        self._kinds[kind] = priority, work

    def add(self, kind: str, document_id: int = 0, delay_seconds: float = 0.0) -> None:
        """Queue a job, to be done in its turn, or not before a delay is over."""
        owner = None if delay_seconds else self._owner_of(document_id)
        with self._changed:
            if delay_seconds:
                due = time.monotonic() + delay_seconds
                heapq.heappush(self._later, (due, next(self._order), kind, document_id))
            else:
                self._rounds[owner] = turn = max(self._round, self._rounds.get(owner, 0) + 1)
                self._push(turn, kind, document_id)
            self._changed.notify()

    @property
    def waiting(self) -> tuple[int, int]:
        """Return how many jobs are due, and how many are scheduled for later."""
        return len(self._now), len(self._later)

    @property
    def busy(self) -> bool:
        """Whether a job is queued, scheduled or running."""
        with self._changed:
            return bool(self._at_hand or self._now or self._later)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more jobs, and wait for the running one."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_SECONDS)

    def _push(self, turn: int, kind: str, document_id: int) -> None:
        heapq.heappush(self._now, (-self._kinds[kind][0], turn, next(self._order), kind, document_id))

    def _run(self) -> None:
        while (job := self._next()) is not None:
            kind, document_id = job
            try:
                self._kinds[kind][1](document_id)
            except Exception:
                log.exception("%s %s failed", kind, document_id)

    def _next(self) -> tuple[str, int] | None:
        """Wait for the next job and return it; ``None`` at the end."""
        with self._changed:
            self._at_hand = False
            while not self._stopping:
                while self._later and self._later[0][0] <= time.monotonic():
                    self._push(self._round, *heapq.heappop(self._later)[2:])
                if self._now:
                    self._at_hand = True
                    _, turn, _, kind, document_id = heapq.heappop(self._now)
                    self._round = max(self._round, turn)
                    return kind, document_id
                self._changed.wait(self._later[0][0] - time.monotonic() if self._later else None)
        return None


class Heartbeat:
    """Calls ``beat``, which must not raise, at an interval."""

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current beat, without waiting for one that hangs."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(HEARTBEAT_TIMEOUT_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            self._beat()


MAX_SECONDS = 1.0


class Probe:
    """Checks a part's state and caches it for ``max_age_seconds``: ``silent`` after a second or an error.

    ``ask`` returns it, ``None`` if the part is ready.
    """

    def __init__(self, name: str, ask: Callable[[], str | None], silent: str, max_age_seconds: float = 0.0) -> None:
        self._name = name
        self._ask = ask
        self._silent = silent
        self._max_age = max_age_seconds
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._said = silent
        self._asked_at = 0.0

    def state(self) -> str:
        with self._lock:
            if self._asking is not None and not self._asking.is_alive():
                fresh = time.monotonic() - self._asked_at < self._max_age
                self._asking = self._asking if fresh else None
            if self._asking is None:
                self._said, self._asked_at = self._silent, time.monotonic()
                self._asking = threading.Thread(target=self._run, name=f"{self._name}-probe", daemon=True)
                self._asking.start()
            self._asking.join(MAX_SECONDS)
            return self._silent if self._asking.is_alive() else self._said

    def _run(self) -> None:
        try:
            self._said = self._ask() or "ready"
        except Exception as error:  # noqa: BLE001 - whatever it is, it does not answer
            log.error("%s does not answer: %s", self._name, error)


MAX_STEP = timedelta(days=1)


class SteadyClock:
    """Compares the clock with the time that has passed, which no setting of the clock changes."""

    def __init__(self) -> None:
        self._began = _began()
        self._jumped = False

    def now(self) -> datetime | None:
        """Return the time; ``None`` while it is a day off. If the clock is right now, the next start believes it."""
        moment = datetime.now(UTC)
        jumped = abs(_began() - self._began) > MAX_STEP
        if jumped and not self._jumped:
            log.error("The clock jumped to %s: nothing is deleted by age until it is back, or a restart.", moment)
        self._jumped = jumped
        return None if jumped else moment


def _began() -> datetime:
    """Return when, by the clock, the machine was started."""
    return datetime.now(UTC) - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))
