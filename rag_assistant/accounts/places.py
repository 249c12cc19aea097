"""What one person occupies of a server at one moment: threads are for all, and nobody may hold them all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal

from rag_assistant.records.errors import LimitReached

# Reading is quick. An upload is read as slowly as it comes. What waits is an answer, which others have limits for.
Kind = Literal["reading", "upload", "waiting"]
# Of the 128 threads for what is quick, of the 16 that read large bodies, and of one for each running answer.
MAX_PLACES: dict[Kind, int] = {"reading": 16, "upload": 4, "waiting": 32}
# Of what somebody reads at one moment, so many are worked on; the rest wait, so that others are as quick as ever.
MAX_WORKING = 2
WORK_TIMEOUT_SECONDS = 10.0
RETRY_SECONDS = 1.0


class Places:
    """The places of one person."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[Kind] = Counter()
        self._working = threading.BoundedSemaphore(MAX_WORKING)

    def take(self, kind: Kind) -> Callable[[], None]:
        """Take a place and return what gives it back. Raises LimitReached."""
        with self._lock:
            if self._taken[kind] >= MAX_PLACES[kind]:
                raise LimitReached(f"{MAX_PLACES[kind]} requests of yours are under way already", RETRY_SECONDS)
            self._taken[kind] += 1
        return lambda: self._give_back(kind)

    def work(self) -> Callable[[], None]:
        """Wait until it is this request's turn, and return what ends that. Raises LimitReached."""
        if not self._working.acquire(timeout=WORK_TIMEOUT_SECONDS):
            raise LimitReached("Other requests of yours take too long", RETRY_SECONDS)
        return self._working.release

    def _give_back(self, kind: Kind) -> None:
        with self._lock:
            self._taken[kind] -= 1
