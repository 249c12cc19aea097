"""What we have learnt about a model from its answers: how it counts tokens, what it takes, and whether it calls tools.

Kept in memory: after a start the first answers teach it anew.
"""

from __future__ import annotations

import json
import threading
from collections import deque

from rag_assistant.history import count_message, estimate_tokens
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.prompt_counts import (
    MIN_LIMIT_TOKENS,
    CountedPrompt,
    guess_limit,
    judge,
    reported_counts,
    size_of,
)
from rag_assistant.records import ModelReply, ModelRequest, Reading, pictures_in

# A model that let tools lie so often, where a search would have found something, is offered none any more.
MAX_UNUSED = 2
SHARE_OF_NEWEST = 0.3
MIN_RATIO, MAX_RATIO = 0.3, 4.0
# Shorter ones say more of a chat template than of a tokenizer.
MIN_TOKENS_TO_LEARN_FROM = 300
# Nobody counts ten times as many tokens as we do: such a figure is a mistake.
MAX_TIMES_OUR_ESTIMATE = 8
# With so many requests before it a count is compared.
MAX_EARLIER = 64


class ToolHabits:
    """Knows of each model whether it takes tools, and whether it ever calls one."""

    def __init__(self) -> None:
        self._unused: dict[tuple[str, str | None], int] = {}
        self._calls: set[tuple[str, str | None]] = set()

    def takes_tools(self, endpoint: Endpoint) -> bool:
        """Tell whether it is worth while to offer tools."""
        return endpoint.takes_tools and self._unused.get(endpoint.key, 0) < MAX_UNUSED

    def has_called(self, endpoint: Endpoint) -> bool:
        """Tell whether a model has ever called a tool."""
        return endpoint.key in self._calls

    def learn_call(self, endpoint: Endpoint) -> None:
        """Take note that a model called a tool."""
        self._calls.add(endpoint.key)

    def learn_unused(self, endpoint: Endpoint) -> None:
        """Take note that a model answered by itself where a search would have found something."""
        self._unused[endpoint.key] = self._unused.get(endpoint.key, 0) + 1

    def learn_refusal(self, endpoint: Endpoint) -> None:
        """Take note that an endpoint refuses tools."""
        self._unused[endpoint.key] = MAX_UNUSED


class Calibration:
    """Learns, for each endpoint and model, how it counts tokens, and the longest request that it takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ratios: dict[tuple[str, str | None], float] = {}
        self._limits: dict[tuple[str, str | None], int] = {}
        self._accepted: dict[tuple[str, str | None], int] = {}
        self._whole_counts: dict[tuple[str, str | None], int] = {}
        self._earlier: dict[tuple[str, str | None], deque[CountedPrompt]] = {}

    def ratio(self, endpoint: Endpoint) -> float:
        """Return by what our estimate has to be multiplied for this model; 1 while nothing is known."""
        return self._ratios.get(endpoint.key, 1.0)

    def read(self, endpoint: Endpoint, request: ModelRequest, reply: ModelReply) -> Reading | None:
        """Return how much of a request an endpoint read, and learn from that; ``None`` where it does not count."""
        count, cached = reported_counts(reply.usage)
        if count is None:
            return None
        key, size = endpoint.key, size_of(request)
        with self._lock:
            earlier = self._earlier.setdefault(key, deque(maxlen=MAX_EARLIER))
            whole_counts = self._whole_counts.get(key, 0)
            verdict = judge(size, count, cached, earlier, whole_counts)
            if verdict.is_rest:
                self._whole_counts[key] = -1
            elif verdict.is_whole and whole_counts >= 0:
                self._whole_counts[key] = whole_counts + 1
            whole = verdict.read if verdict.read is not None and not verdict.cut else 0
            if verdict.cut:
                self._limits[key] = guess_limit(count, self._accepted.get(key, 0), verdict.sent)
            earlier.append(CountedPrompt(size, whole))
        if whole and not any(map(pictures_in, request.messages)):  # Nobody can estimate those.
            self.learn(endpoint, estimated_tokens(request), whole)
        return Reading(verdict.sent, verdict.read, self._limits[key] if verdict.cut else None)

    def learn(self, endpoint: Endpoint, estimated: int, counted: int) -> None:
        """Take note of a request: our own estimate, uncorrected, and what the endpoint counted of all of it."""
        if min(counted, estimated) < MIN_TOKENS_TO_LEARN_FROM or counted > MAX_TIMES_OUR_ESTIMATE * estimated:
            return
        newest = min(MAX_RATIO, max(MIN_RATIO, counted / estimated))
        with self._lock:
            self._accepted[endpoint.key] = max(counted, self._accepted.get(endpoint.key, 0))
            ratio = self._ratios.get(endpoint.key)
            # A larger count is believed at once, a smaller one slowly: too long a request costs more than a short one.
            mixed = newest if ratio is None else ratio + SHARE_OF_NEWEST * (newest - ratio)
            self._ratios[endpoint.key] = max(newest, mixed)

    def limit(self, endpoint: Endpoint) -> int | None:
        """Return the most tokens that the model takes, as it refused or cut a request, ``None`` if it never did."""
        return self._limits.get(endpoint.key)

    def learn_refusal(self, endpoint: Endpoint, estimated: int, limit: int | None, counted: int | None) -> None:
        """Take note of a request that was refused for its length; the figures are the endpoint's, as far as told.

        They can only make us more careful. A limit below what the model has taken before is not believed.
        """
        with self._lock:
            if limit is not None and limit >= max(MIN_LIMIT_TOKENS, self._accepted.get(endpoint.key, 0)):
                self._limits[endpoint.key] = limit
            if counted is not None and estimated < counted <= MAX_TIMES_OUR_ESTIMATE * estimated:
                ratio = min(MAX_RATIO, counted / estimated)
                self._ratios[endpoint.key] = max(ratio, self._ratios.get(endpoint.key, 1.0))


def estimated_tokens(request: ModelRequest) -> int:
    """Return our own estimate of a request, before any correction."""
    more = [*request.tools, *request.fields.values()]
    schemas = estimate_tokens(json.dumps(more)) if more else 0
    return schemas + sum(count_message(message, estimate_tokens) for message in request.messages)
