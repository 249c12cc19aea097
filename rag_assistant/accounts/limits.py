"""What one person may take of a server that others use, too: questions a minute, answers at once, bytes stored."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from rag_assistant.errors import LimitReached, StorageLimitReached
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.usage import UsageStore

MINUTE_SECONDS = 60.0
RETRY_RUNNING_SECONDS = 5.0
MEGABYTE = 1_000_000


class PersonalLimits:
    """Refuses what is more than one person's share. The limits are settings; null is none."""

    def __init__(
        self, usage: UsageStore, settings: Callable[[], Settings], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._usage = usage
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: deque[float] = deque()

    @property
    def asked(self) -> int:
        """How many questions of the last minute were taken."""
        with self._lock:
            self._forget(self._clock())
            return len(self._asked)

    @property
    def running(self) -> int:
        """How many answers are being written."""
        return self._usage.running()

    @property
    def stored_bytes(self) -> int:
        """How many bytes the files in the person's own libraries have."""
        return self._usage.stored_bytes()

    def take_question(self) -> None:
        """Count a question that is about to be answered. Raises LimitReached; then it does not count."""
        settings, moment = self._settings(), self._clock()
        at_once, per_minute = settings.max_running_answers_per_person, settings.max_questions_per_minute
        if at_once is not None and self._usage.running() >= at_once:
            raise LimitReached(f"{at_once} of your answers are being written already", RETRY_RUNNING_SECONDS)
        with self._lock:
            self._forget(moment)
            if per_minute is not None and len(self._asked) >= per_minute:
                wait = self._asked[-per_minute] + MINUTE_SECONDS - moment
                raise LimitReached(f"You have asked {per_minute} questions within a minute", wait)
            self._asked.append(moment)

    def refuse_bytes(self, size: int) -> None:
        """Refuse a file for which there is no room left. Raises StorageLimitReached."""
        limit = self._settings().max_stored_mb_per_person
        if limit is not None and self._usage.stored_bytes() + size > limit * MEGABYTE:
            raise StorageLimitReached(size / MEGABYTE, limit)

    def _forget(self, moment: float) -> None:
        while self._asked and moment - self._asked[0] >= MINUTE_SECONDS:
            self._asked.popleft()
