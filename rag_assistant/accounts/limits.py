"""Limits per person: questions per minute, concurrent answers and requests, bytes; tokens and costs, also in total."""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic
from typing import Literal

from msgspec import Struct

from rag_assistant.records.errors import LimitReached, SharedLimitReached, StorageFailed
from rag_assistant.runtime.telemetry.metrics import Metrics
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.usage import DAY, MONTH, UsageStore, Used, cost_of

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
TOKENS_OF_ALL = "This server has used {n} tokens within a day, which is its limit"
COST_PERIODS = {"day": DAY, "month": MONTH}


class Places:
    """A person's concurrent requests: nobody may use up the server's threads."""

    def __init__(self) -> None:
        self._places = {kind: threading.BoundedSemaphore(count) for kind, count in MAX_PLACES.items()}
        self._work = threading.Semaphore(MAX_WORKED_ON)

    def take(self, kind: Kind) -> Callable[[], None]:
        """Take a place and return a function that releases it. Raises LimitReached."""
        if not self._places[kind].acquire(blocking=False):
            raise LimitReached(f"{MAX_PLACES[kind]} requests of yours are under way already", RETRY_PLACE_SECONDS)
        return self._places[kind].release

    def work(self) -> Callable[[], None]:
        """Wait until few enough are worked on; return a function that ends this one's work. Raises LimitReached."""
        if not self._work.acquire(timeout=MAX_WAIT_SECONDS):
            raise LimitReached(f"{MAX_WORKED_ON} requests of yours take long", RETRY_PLACE_SECONDS)
        return self._work.release


class Limit(Struct, frozen=True):
    """How much of ``what`` a person, or all together, may use within a time; ``sentence`` says that it is used up."""

    amount: float
    person_id: int | None
    what: Used
    time: timedelta
    sentence: str


class ModelLimits:
    """Counts the tokens of models and their cost, and enforces the limits, in total and per person, on new answers."""

    def __init__(
        self, settings: Callable[[], Settings], usage: UsageStore, metrics: Metrics, person_id: int | None = None
    ) -> None:
        self.settings = settings
        self.usage = usage
        self.metrics = metrics
        self._person_id = person_id
        self._lock = threading.Lock()
        # Not stored yet, and when something was.
        self._tokens, self._cost, self._stored_at = 0, 0.0, monotonic()

    def count(self, model: str, sent: int, cached: int, written: int) -> None:
        """Count the tokens of a request; without a person or a limit of all, they are stored once a minute."""
        cost = cost_of(sent, written, self.settings().model_prices.get(model)) or 0.0
        self.metrics.count_request(model, {"in": sent, "cached": cached, "out": written}, cost)
        is_unlimited = self._person_id is None and not any(self._limits())
        with self._lock:
            self._tokens += sent + written
            self._cost += cost
            if is_unlimited and monotonic() - self._stored_at < COUNT_INTERVAL_SECONDS:
                return
            tokens, cost = self._tokens, self._cost
            self._tokens, self._cost, self._stored_at = 0, 0.0, monotonic()
        try:
            self.usage.keep_use(tokens, cost, self._person_id)
        except StorageFailed as error:  # The answer is worth more than its figure.
            log.warning("The usage of %s tokens could not be recorded: %s", tokens, error)

    def percent_used(self, what: Used) -> int:
        """Return how much of a limit is used up: of the one that ends sooner; 0 without any."""
        return max((int(100 * self._used(one) / one.amount) for one in self._limits() if one.what == what), default=0)

    def refuse_beyond(self) -> None:
        """Raise LimitReached or SharedLimitReached if a limit is used up."""
        for one in self._limits():
            if self._used(one) >= one.amount:
                wait = self.usage.seconds_until_below(one.amount, one.what, one.time, one.person_id)
                raise (SharedLimitReached if one.person_id is None else LimitReached)(one.sentence, wait)

    def _used(self, one: Limit) -> float:
        waiting = self._tokens if one.what == "tokens" else self._cost
        return self.usage.used(one.what, one.time, one.person_id) + waiting

    def _limits(self) -> Iterator[Limit]:
        """Yield the limits that are set, the person's own first."""
        values, mine = self.settings(), self._person_id
        period = values.max_cost_period
        limits: list[tuple[float | None, int | None, Used, str]] = [
            (values.max_tokens_per_day_per_person, mine, "tokens", "You have used {n} tokens within a day"),
            (values.max_cost_per_person, mine, "cost", f"You have used your budget of {{n}} for a {period}"),
            (values.max_tokens_per_day, None, "tokens", TOKENS_OF_ALL),
            (values.max_cost, None, "cost", f"This server has used its budget of {{n}} for a {period}"),
        ]
        for amount, person_id, what, sentence in limits[0 if mine else 2 :]:
            if amount is not None:
                time = DAY if what == "tokens" else COST_PERIODS[period]
                yield Limit(amount, person_id, what, time, sentence.format(n=f"{amount:,.12g}"))


class PersonalLimits:
    """Enforces one person's limits beside ``shared`` ones; ``process`` returns this one's name among live processes."""

    def __init__(self, shared: ModelLimits, person_id: int, process: Callable[[], str]) -> None:
        self.places = Places()
        self.of_models = ModelLimits(shared.settings, shared.usage, shared.metrics, person_id)
        self.usage = shared.usage
        self.person_id = person_id
        self._settings = shared.settings
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
