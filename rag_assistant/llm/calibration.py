"""What a model's answers teach: how it counts tokens, its context limit, and whether it calls tools."""

import json
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from msgspec.structs import replace

from rag_assistant.history import count_message, estimate_tokens
from rag_assistant.llm import prompt_counts
from rag_assistant.llm.endpoint import Endpoint, Guess
from rag_assistant.records import MAX_INT32, ModelCounts, ModelReply, ModelRequest, Reading
from rag_assistant.records.errors import StorageFailed

# A model that ignored tools this often, where a search would have found something, is no longer offered any.
MAX_UNUSED = 2
# After so many unusable answers in a row to one kind of extra request, only every so many is still sent.
MAX_UNUSABLE, SEND_EVERY = 4, 20
SHARE_OF_NEWEST = 0.3
MIN_RATIO, MAX_RATIO = 0.3, 4.0
MIN_RATIO_CHANGE = 0.1
# Shorter requests say more about a chat template than about a tokenizer.
MIN_TOKENS_TO_LEARN_FROM = 300
# Two cuts agree if their counts differ by no more. Once an hour a request may be longer than what was guessed from
# them. That is forgotten a day after the last cut, and what a refusal named a day after that.
MAX_TIMES_APART, TO_TRY, TO_FORGET = 1.5, timedelta(hours=1), timedelta(days=1)
# How many earlier requests a count is compared with.
MAX_EARLIER = 32

Key = tuple[str, str | None]


class ToolHabits:
    """Knows for each model whether it accepts tools, and whether it ever calls one."""

    def __init__(self) -> None:
        self._unused: dict[tuple[str, str | None], int] = {}
        self._calls: set[tuple[str, str | None]] = set()

    def takes_tools(self, endpoint: Endpoint) -> bool:
        """Return whether offering tools makes sense."""
        return endpoint.takes_tools and self._unused.get(endpoint.key, 0) < MAX_UNUSED

    def has_called(self, endpoint: Endpoint) -> bool:
        """Return whether a model has ever called a tool."""
        return endpoint.key in self._calls

    def learn_call(self, endpoint: Endpoint) -> None:
        """Record that a model called a tool."""
        self._calls.add(endpoint.key)

    def learn_unused(self, endpoint: Endpoint) -> None:
        """Record that a model answered without tools where a search would have found something."""
        self._unused[endpoint.key] = self._unused.get(endpoint.key, 0) + 1

    def learn_refusal(self, endpoint: Endpoint) -> None:
        """Record that an endpoint refuses tools."""
        self._unused[endpoint.key] = MAX_UNUSED

    def forget(self, endpoint: Endpoint) -> None:
        """Forget what is known: another model may be started there."""
        self._unused.pop(endpoint.key, None)
        self._calls.discard(endpoint.key)


class ExtraRequests:
    """Knows which requests besides an answer's own each model handles; a small one may handle none of a kind."""

    def __init__(self) -> None:
        self._unusable: dict[tuple[Key, str], int] = {}  # Copied to be read through: other threads learn meanwhile.

    def is_worth_sending(self, endpoint: Endpoint, kind: str) -> bool:
        """Return whether to send one more of a kind, such as "rewriting"."""
        unusable = self._unusable.get((endpoint.key, kind), 0)
        if unusable < MAX_UNUSABLE:
            return True
        self._unusable[endpoint.key, kind] = unusable + 1
        return (unusable + 1 - MAX_UNUSABLE) % SEND_EVERY == 0

    def learn(self, endpoint: Endpoint, kind: str, is_usable: bool) -> None:
        """Record whether an answer to such a request was usable."""
        self._unusable[endpoint.key, kind] = 0 if is_usable else self._unusable.get((endpoint.key, kind), 0) + 1

    def forget(self, endpoint: Endpoint) -> None:
        """Forget what is known: another model may be started there."""
        self._unusable = {pair: n for pair, n in self._unusable.copy().items() if pair[0] != endpoint.key}

    def omitted(self, endpoint: Endpoint) -> list[str]:
        """Return the kinds that are left out for now."""
        return [kind for (key, kind), n in self._unusable.copy().items() if key == endpoint.key and n >= MAX_UNUSABLE]


# How what is known of a model is loaded and stored, by base URL and model.
LoadCounts = Callable[[str, str], ModelCounts | None]
KeepCounts = Callable[[str, str, ModelCounts], None]


class Calibration:
    """Learns how each model counts tokens, and its limit; ``keep`` stores that, except small changes of a ratio."""

    def __init__(self, load: LoadCounts = lambda *_: None, keep: KeepCounts = lambda *_: None) -> None:
        self._load, self._keep = load, keep
        self._lock = threading.RLock()
        self._counts: dict[Key, ModelCounts] = {}
        self._kept: dict[Key, ModelCounts] = {}
        self._accepted: dict[Key, int] = {}
        self._earlier: dict[Key, deque[prompt_counts.PromptSize]] = {}
        # Until a restart: a low count with the tokens sent, what was guessed after another, or named; a picture's.
        self._suspected: dict[Key, tuple[int, int]] = {}
        self._guesses: dict[Key, Guess] = {}
        self._picture_tokens: dict[Key, float] = {}

    def ratio(self, endpoint: Endpoint) -> float:
        """Return the factor for our estimates for this model; 1 while unknown."""
        return self._known(endpoint).ratio or 1.0

    def picture_tokens(self, endpoint: Endpoint, expected: int) -> int:
        """Return what a picture costs by this model's counts, or as expected."""
        return ceil(self._picture_tokens.get(endpoint.key, expected))

    def limited(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint with its context limit: the declared one, or one learned since."""
        counts = self._known(endpoint)
        if counts.declared_limit != endpoint.context_tokens:
            self.forget(endpoint)
            counts = self._learn(endpoint, context_limit=None, declared_limit=endpoint.context_tokens)
        declared = min(counts.context_limit or MAX_INT32, endpoint.context_tokens or MAX_INT32)
        guess = self.guess(endpoint)
        if guess is not None and (guess.limit < declared if guess.is_named else declared == MAX_INT32):
            return replace(endpoint, context_tokens=None if guess.is_tried else guess.limit, guess=guess)
        return replace(endpoint, context_tokens=None if declared == MAX_INT32 else declared)

    def guess(self, endpoint: Endpoint) -> Guess | None:
        """Return the limit that two cuts tell, to be tried after an hour, or a refusal; neither is older than a day."""
        guess = self._guesses.get(endpoint.key)
        if guess is None or (age := datetime.now(UTC) - guess.at) >= TO_FORGET:
            return None
        return replace(guess, is_tried=not guess.is_named and age >= TO_TRY)

    def suspects(self, endpoint: Endpoint, reading: Reading) -> bool:
        """Return whether the last count was too low to be of everything sent, and nothing confirms a cut yet."""
        return self._suspected.get(endpoint.key) == (reading.read, reading.sent)

    def forget(self, endpoint: Endpoint) -> None:
        """Forget what was guessed about the limit, and what was read whole: the endpoint may have been restarted."""
        with self._lock:
            for learned in (self._guesses, self._suspected, self._accepted):
                learned.pop(endpoint.key, None)

    def read(
        self, endpoint: Endpoint, request: ModelRequest, reply: ModelReply, *, teaches: bool = True
    ) -> Reading | None:
        """Return how much of a request an endpoint read, ``None`` if it doesn't count; learn if that ``teaches``."""
        usage = reply.usage or {}
        count, cached = usage.get("prompt_tokens"), usage.get("cached_tokens", 0)
        if count is None:
            return None
        size = prompt_counts.size_of(request)
        with self._lock:
            earlier = self._earlier.setdefault(endpoint.key, deque(maxlen=MAX_EARLIER))
            counts = self._known(endpoint)
            price = self._picture_tokens.get(endpoint.key, prompt_counts.TOKENS_PER_PICTURE)
            verdict = prompt_counts.judge(size, count, cached, earlier, counts.whole_counts, price)
            limit = self._believed_limit(endpoint, verdict, count, teaches) if verdict.cut else None
            if not teaches:
                return Reading(verdict.sent, verdict.read, limit)
            is_sure = not cached or verdict.is_whole or counts.whole_counts >= prompt_counts.SURE_AFTER
            whole = verdict.read if verdict.read is not None and is_sure and not verdict.cut else 0
            earlier.append(replace(size, count=whole))
            if verdict.is_rest:
                self._learn(endpoint, whole_counts=-1)
            elif verdict.is_whole and counts.whole_counts < prompt_counts.SURE_AFTER:
                self._learn(endpoint, whole_counts=counts.whole_counts + 1)
            guess = self.guess(endpoint)
            if guess is not None and whole > guess.limit:
                del self._guesses[endpoint.key]
            if whole and size.pictures:
                price += (whole - verdict.sent) / size.pictures
                self._picture_tokens[endpoint.key] = min(max(price, 0), prompt_counts.MAX_TOKENS_PER_PICTURE)
            if whole and verdict.sent >= self._suspected.get(endpoint.key, (0, 0))[1]:
                self._suspected.pop(endpoint.key, None)
        if whole and not size.pictures:  # Nobody can estimate those.
            self.learn(endpoint, estimated_tokens(request), whole)
        return Reading(verdict.sent, verdict.read, limit)

    def _believed_limit(
        self, endpoint: Endpoint, verdict: prompt_counts.Verdict, count: int, teaches: bool
    ) -> int | None:
        """Return the limit that explains a low count: the declared one, or a guess after a second cut that agrees."""
        counts, accepted = self._known(endpoint), self._accepted.get(endpoint.key, 0)
        guess, declared = self.guess(endpoint), counts.context_limit or counts.declared_limit
        if declared is not None or not teaches or (guess and guess.is_named):
            limit = min(declared or MAX_INT32, guess.limit if guess else MAX_INT32)
            return limit if verdict.sent > limit else None
        if verdict.sent <= accepted:  # As much was read whole before.
            return None
        suspected, _ = self._suspected.pop(endpoint.key, (0, 0))
        if guess is None and not count / MAX_TIMES_APART <= suspected <= count * MAX_TIMES_APART:
            self._suspected[endpoint.key] = count, verdict.sent
            return None
        limit = prompt_counts.guess_limit(max(count, suspected), accepted, verdict.sent)
        if guess is not None and limit >= guess.limit:  # It was too high, unless more was sent.
            limit = guess.limit if verdict.sent > guess.limit else max(count, accepted, prompt_counts.MIN_LIMIT_TOKENS)
        self._guesses[endpoint.key] = Guess(limit, verdict.sent, count, datetime.now(UTC))
        return limit

    def learn(self, endpoint: Endpoint, estimated: int, counted: int) -> None:
        """Learn from our uncorrected estimate of a request and the endpoint's full count."""
        is_error = counted > prompt_counts.MAX_TIMES_OUR_ESTIMATE * estimated
        if is_error or min(counted, estimated) < MIN_TOKENS_TO_LEARN_FROM:
            return
        newest = min(MAX_RATIO, max(MIN_RATIO, counted / estimated))
        with self._lock:
            self._accepted[endpoint.key] = max(counted, self._accepted.get(endpoint.key, 0))
            ratio = self._known(endpoint).ratio
            # A larger count is accepted at once, a smaller one slowly: too long a request costs more than a short one.
            mixed = newest if ratio is None else ratio + SHARE_OF_NEWEST * (newest - ratio)
            self._learn(endpoint, ratio=max(newest, mixed))

    def learn_limit(self, endpoint: Endpoint, limit: int | None) -> None:
        """Store the limit a server reports; ``None`` clears what was learned."""
        self.forget(endpoint)
        self._learn(endpoint, context_limit=limit)

    def learn_refusal(self, endpoint: Endpoint, estimated: int, limit: int | None, counted: int | None) -> None:
        """Learn from a request refused for its length; the figures are the endpoint's, as far as known.

        They only make us more careful: a limit below what the model has accepted before is ignored.
        """
        with self._lock:
            if limit is not None and limit >= max(prompt_counts.MIN_LIMIT_TOKENS, self._accepted.get(endpoint.key, 0)):
                self._guesses[endpoint.key] = Guess(limit, estimated, 0, datetime.now(UTC), is_named=True)
            if counted is not None and estimated < counted <= prompt_counts.MAX_TIMES_OUR_ESTIMATE * estimated:
                self._learn(endpoint, ratio=max(min(MAX_RATIO, counted / estimated), self.ratio(endpoint)))

    def _known(self, endpoint: Endpoint) -> ModelCounts:
        with self._lock:
            if endpoint.key not in self._counts:
                counts = None
                if _is_kept(endpoint):
                    with suppress(StorageFailed):
                        counts = self._load(endpoint.base_url, endpoint.model or "")
                self._counts[endpoint.key] = self._kept[endpoint.key] = counts or ModelCounts()
            return self._counts[endpoint.key]

    def _learn(self, endpoint: Endpoint, **learned: Any) -> ModelCounts:
        with self._lock:
            counts = self._counts[endpoint.key] = replace(self._known(endpoint), **learned)
            stored = self._kept[endpoint.key]
            ratio = counts.ratio or 1.0
            is_near = stored.ratio is not None and abs(stored.ratio - ratio) < MIN_RATIO_CHANGE * ratio
            if _is_kept(endpoint) and counts != (replace(stored, ratio=counts.ratio) if is_near else stored):
                with suppress(StorageFailed):  # It will be learned again.
                    self._keep(endpoint.base_url, endpoint.model or "", counts)
                    self._kept[endpoint.key] = counts
            return counts


def _is_kept(endpoint: Endpoint) -> bool:
    """Return whether it can be recognised after a restart; a local model's address changes."""
    return endpoint.model is not None and not (endpoint.local or endpoint.quotes)


def estimated_tokens(request: ModelRequest) -> int:
    """Return our own uncorrected estimate of a request."""
    more = [*request.tools, *request.fields.values()]
    schemas = estimate_tokens(json.dumps(more)) if more else 0
    return schemas + sum(count_message(message, estimate_tokens) for message in request.messages)
