"""Work that goes on behind the pages: a thread, and what it is to look at next.

What is to be done, and who does it, stands in the documents' table: whoever takes a document there has it alone, so a
queue may be lost with its process, or say a thing twice. Beside it, a thread that does the same small thing again and
again.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

STOP_TIMEOUT_SECONDS = 10.0
# A beat that hangs is waited for so long.
HEARTBEAT_TIMEOUT_SECONDS = 5.0

# What does the work, given a document's id (or 0).
Work = Callable[[int], None]


class JobQueue:
    """One queue with one thread: a piece of work at a time, the higher priority first, then in the order of coming."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[str, tuple[int, Work]] = {}
        self._changed = threading.Condition()
        self._order = itertools.count()
        self._now: list[tuple[int, int, str, int]] = []
        self._later: list[tuple[float, int, str, int]] = []
        self._at_hand = False
        self._stopping = False
        self._thread: threading.Thread | None = None

    def offer(self, kind: str, work: Work, priority: int = 0) -> None:
        """Say how a kind of work is done."""
        self._kinds[kind] = priority, work

    def add(self, kind: str, document_id: int = 0, delay_seconds: float = 0.0) -> None:
        """Queue a piece of work, to be done when its turn comes, or not before a delay is over."""
        with self._changed:
            if delay_seconds:
                due = time.monotonic() + delay_seconds
                heapq.heappush(self._later, (due, next(self._order), kind, document_id))
            else:
                self._push(kind, document_id)
            self._changed.notify()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many pieces of work wait for their turn, and how many for a later moment."""
        return len(self._now), len(self._later)

    @property
    def busy(self) -> bool:
        """Whether a piece of work waits, those for later included, or is at hand."""
        with self._changed:
            return bool(self._at_hand or self._now or self._later)

    def start(self) -> None:
        """Begin to work, in a thread of this process."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more from the queue, and wait for the piece of work at hand."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_SECONDS)

    def _push(self, kind: str, document_id: int) -> None:
        heapq.heappush(self._now, (-self._kinds[kind][0], next(self._order), kind, document_id))

    def _run(self) -> None:
        while (job := self._next()) is not None:
            kind, document_id = job
            try:
                self._kinds[kind][1](document_id)
            except Exception:
                log.exception("%s %s failed", kind, document_id)

    def _next(self) -> tuple[str, int] | None:
        """Wait for the next piece of work and return it; ``None`` at the end."""
        with self._changed:
            self._at_hand = False
            while not self._stopping:
                while self._later and self._later[0][0] <= time.monotonic():
                    self._push(*heapq.heappop(self._later)[2:])
                if self._now:
                    self._at_hand = True
                    return heapq.heappop(self._now)[2:]
                self._changed.wait(self._later[0][0] - time.monotonic() if self._later else None)
        return None


class Heartbeat:
    """Calls ``beat``, which may not raise, every so many seconds."""

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the beat at hand; one that hangs is not waited for."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(HEARTBEAT_TIMEOUT_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            self._beat()
