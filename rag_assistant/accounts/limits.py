"""Limits per person: questions per minute, concurrent answers and requests, bytes; tokens per day, also in total."""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Literal

from rag_assistant.records.errors import LimitReached, SharedLimitReached, StorageFailed
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.usage import UsageStore

log = logging.getLogger(__name__)

# Reading is quick, an upload is hashed and stored. Answers take long, and have their own limits.
Kind = Literal["reading", "upload", "waiting"]
# Of the server's spare threads, and of the thread of each running answer.
MAX_PLACES: dict[Kind, int] = {"reading": 16, "upload": 4, "waiting": 32}
RETRY_PLACE_SECONDS = 1.0
COUNT_INTERVAL_SECONDS = 60.0
# How many that read are worked on at once, and how long others wait for that: the heaviest pages of one person leave
# the interpreter to everybody else.
MAX_WORKED_ON, MAX_WAIT_SECONDS = 3, 30.0
MEGABYTE = 1_000_000


class Places:
    """A person's concurrent requests: nobody may use up the server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[Kind] = Counter()
        self._work = threading.Semaphore(MAX_WORKED_ON)

    def take(self, kind: Kind) -> Callable[[], None]:
        """Take a place and return a function that releases it. Raises LimitReached."""
        with self._lock:
            if self._taken[kind] >= MAX_PLACES[kind]:
                raise LimitReached(f"{MAX_PLACES[kind]} requests of yours are under way already", RETRY_PLACE_SECONDS)
            self._taken[kind] += 1

        def give_back() -> None:
            with self._lock:
                self._taken[kind] -= 1

        return give_back

    def work(self) -> Callable[[], None]:
        """Wait until few enough are worked on; return a function that ends this one's work. Raises LimitReached."""
        if not self._work.acquire(timeout=MAX_WAIT_SECONDS):
            raise LimitReached(f"{MAX_WORKED_ON} requests of yours take long", RETRY_PLACE_SECONDS)
        return self._work.release


class PersonalLimits:
    """Enforces one person's limits, from the settings; ``process`` returns this one's name among live processes."""

    def __init__(
        self, usage: UsageStore, person_id: int, settings: Callable[[], Settings], process: Callable[[], str]
    ) -> None:
        self.places = Places()
        self.of_models = TokenLimits(settings, usage, person_id)
        self.usage = usage
        self.person_id = person_id
        self._settings = settings
        self._process = process
        # Questions no longer being answered, until that is stored.
        self._ended: set[int] = set()

    def take_question(self) -> int:
        """Count a question and return its number for release. Raises LimitReached; then it doesn't count."""
        self._keep_ended()
        settings = self._settings()
        at_once, per_minute = settings.max_running_answers_per_person, settings.max_questions_per_minute
        return self.usage.take_question(self.person_id, self._process(), at_once, per_minute)

    def release_question(self, number: int) -> None:
        """Release a question, so that another one can be answered."""
        self._ended.add(number)
        try:
            self._keep_ended()
        except StorageFailed as error:  # The next question stores it.
            log.warning("The end of an answer could not be recorded: %s", error)

    def _keep_ended(self) -> None:
        if ended := self._ended.copy():
            self.usage.release_questions(ended)
            self._ended -= ended

    def max_bytes(self) -> int | None:
        """Return the person's storage limit in bytes."""
        limit = self._settings().max_stored_mb_per_person
        return None if limit is None else limit * MEGABYTE


class TokenLimits:
    """Counts the tokens models use, and enforces the daily limits, in total and per person, on new answers."""

    def __init__(self, settings: Callable[[], Settings], usage: UsageStore, person_id: int | None = None) -> None:
        self._settings = settings
        self._usage = usage
        self._person_id = person_id
        self._lock = threading.Lock()
        # Not stored yet, and when something was.
        self._uncounted, self._counted_at = 0, monotonic()

    def count(self, tokens: int) -> None:
        """Count the tokens of a request; without a person or a total limit, they are stored once a minute."""
        is_unlimited = self._person_id is None and self._settings().max_tokens_per_day is None
        with self._lock:
            self._uncounted += tokens
            if is_unlimited and monotonic() - self._counted_at < COUNT_INTERVAL_SECONDS:
                return
            tokens, self._uncounted, self._counted_at = self._uncounted, 0, monotonic()
        try:
            self._usage.keep_tokens(tokens, self._person_id)
        except StorageFailed as error:  # The answer is worth more than its figure.
            log.warning("The usage of %s tokens could not be recorded: %s", tokens, error)

    def percent_used(self) -> int:
        """Return how much of a daily limit is used up: of the one that ends sooner; 0 without any."""
        settings = self._settings()
        mine = settings.max_tokens_per_day_per_person if self._person_id is not None else None
        limits = ((mine, self._person_id), (settings.max_tokens_per_day, None))
        return max((100 * self._usage.tokens(person) // limit for limit, person in limits if limit), default=0)

    def refuse_beyond(self) -> None:
        """Raise LimitReached or SharedLimitReached if a daily limit is used up."""
        settings = self._settings()
        mine, all_together = settings.max_tokens_per_day_per_person, settings.max_tokens_per_day
        if self._person_id is not None and mine is not None and self._usage.tokens(self._person_id) >= mine:
            what = f"You have used {mine} tokens within a day"
            raise LimitReached(what, self._usage.seconds_until_below(mine, self._person_id))
        if all_together is not None and self._usage.tokens(None) + self._uncounted >= all_together:
            what = f"This server has used {all_together} tokens within a day, which is its limit"
            raise SharedLimitReached(what, self._usage.seconds_until_below(all_together, None))
