"""What one person may take of a server that others use, too: questions a minute, answers and requests at once, bytes.

And the tokens that models may take within a day, for one person and for all.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Literal

from rag_assistant.records.errors import LimitReached, SharedLimitReached, StorageFailed, StorageLimitReached
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.usage import UsageStore

log = logging.getLogger(__name__)

# Reading is quick, an upload is hashed and kept. What waits is an answer, which others have limits for.
Kind = Literal["reading", "upload", "waiting"]
# Of the spare threads of the server, and of one for each running answer.
MAX_PLACES: dict[Kind, int] = {"reading": 16, "upload": 4, "waiting": 32}
RETRY_PLACE_SECONDS = 1.0
MINUTE_SECONDS = 60.0
RETRY_RUNNING_SECONDS = 5.0
MEGABYTE = 1_000_000


class Places:
    """What one person occupies of a server at one moment: threads are for all, and nobody may hold them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[Kind] = Counter()

    def take(self, kind: Kind) -> Callable[[], None]:
        """Take a place and return what gives it back. Raises LimitReached."""
        with self._lock:
            if self._taken[kind] >= MAX_PLACES[kind]:
                raise LimitReached(f"{MAX_PLACES[kind]} requests of yours are under way already", RETRY_PLACE_SECONDS)
            self._taken[kind] += 1
        return lambda: self._give_back(kind)

    def _give_back(self, kind: Kind) -> None:
        with self._lock:
            self._taken[kind] -= 1


class PersonalLimits:
    """Refuses what is more than one person's share. The limits are settings; null is none."""

    def __init__(
        self,
        usage: UsageStore,
        person_id: int,
        settings: Callable[[], Settings],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = Places()
        self.of_models = TokenLimits(settings, usage, person_id)
        self._usage = usage
        self._person_id = person_id
        self._settings = settings
        self._clock = clock
        # Held from the look at what runs to the row of what is accepted, so that asking at once passes no limit.
        self.accepting = threading.Lock()
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
        return self._usage.running(self._person_id)

    @property
    def stored_bytes(self) -> int:
        """How many bytes the files in the person's own libraries have."""
        return self._usage.stored_bytes(self._person_id)

    @property
    def tokens(self) -> int:
        """How many tokens models took for the person within a day."""
        return self._usage.tokens(self._person_id)

    def take_question(self) -> None:
        """Count a question that is about to be answered. Raises LimitReached; then it does not count."""
        settings, moment = self._settings(), self._clock()
        at_once, per_minute = settings.max_running_answers_per_person, settings.max_questions_per_minute
        if at_once is not None and self._usage.running(self._person_id) >= at_once:
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
        if limit is not None and self._usage.stored_bytes(self._person_id) + size > limit * MEGABYTE:
            raise StorageLimitReached(size / MEGABYTE, limit)

    def _forget(self, moment: float) -> None:
        while self._asked and moment - self._asked[0] >= MINUTE_SECONDS:
            self._asked.popleft()


class TokenLimits:
    """Counts the tokens that models take, and refuses more where a day's limit is reached.

    Both over everybody's usage and over that of one person, if there is one. What is being answered goes on.
    """

    def __init__(self, settings: Callable[[], Settings], usage: UsageStore, person_id: int | None = None) -> None:
        self._settings = settings
        self._usage = usage
        self._person_id = person_id

    def count(self, tokens: int) -> None:
        """Count what a request to a model took; nobody's, only where that is limited."""
        if self._person_id is None and self._settings().max_tokens_per_day is None:
            return
        try:
            self._usage.keep_tokens(tokens, self._person_id)
        except StorageFailed as error:  # The answer is worth more than its figure.
            log.warning("%s tokens could not be counted: %s", tokens, error)

    def refuse_beyond(self) -> None:
        """Refuse what would ask a model. Raises LimitReached, SharedLimitReached."""
        settings = self._settings()
        mine, all_together = settings.max_tokens_per_day_per_person, settings.max_tokens_per_day
        if self._person_id is not None and mine is not None and self._usage.tokens(self._person_id) >= mine:
            what = f"Models have taken {mine} tokens for you within a day"
            raise LimitReached(what, self._usage.seconds_until_below(mine, self._person_id))
        if all_together is not None and self._usage.tokens(None) >= all_together:
            what = f"Models have taken {all_together} tokens within a day, as many as this server gives"
            raise SharedLimitReached(what, self._usage.seconds_until_below(all_together, None))
