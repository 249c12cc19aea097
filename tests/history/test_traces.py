"""Real tool-calling conversations, replayed request by request: no limit makes one that a strict provider refuses."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, get_args

import pytest

from rag_assistant.history import HistoryPolicy, HistoryStrategy, estimate_tokens, fit_history
from rag_assistant.history.budget import count_messages
from rag_assistant.records import Message
from rag_assistant.records.errors import QuestionDoesNotFit
from tests.history.conversations import most_that_must_stay, violations
from tests.history.examples import EVERY_TRACE
from tests.testkit.shared_data import shared_jsonl

LIMITS = range(51)
STRATEGIES: tuple[HistoryStrategy, ...] = get_args(HistoryStrategy)
# What can be left out may stay to this part; below 0 not even the rest fits, and None is no budget.
BUDGETS = (None, 0.8, 0.4, 0.05, -0.2)
# The sample: as many requests as take a second. Primes, so that every limit meets every strategy and budget.
SAMPLED_TRACES, SAMPLED_POLICIES = 13, 211

counted = lru_cache(maxsize=100_000)(estimate_tokens)


def requests() -> Iterator[tuple[str, list[Message]]]:
    """Yield every request that was made of a model in the traces: all that was said up to a question or a result."""
    for trace in shared_jsonl("tool_traces/traces.jsonl")[:: 1 if EVERY_TRACE else SAMPLED_TRACES]:
        messages = trace["messages"]
        for end, message in enumerate(messages, start=1):
            if message["role"] in ("user", "tool"):
                yield trace["_id"], messages[:end]


def policies(messages: list[Message]) -> Iterator[HistoryPolicy]:
    """Yield every combination of limit, strategy and budget."""
    least = most_that_must_stay(messages, HistoryPolicy())
    spare = abs(count_messages(messages, counted) - least)
    for budget in BUDGETS:
        for strategy in STRATEGIES:
            for limit in LIMITS:
                yield HistoryPolicy(
                    max_history_turns=limit,
                    strategy=strategy,
                    tool_iterations_keep=limit,
                    token_budget=None if budget is None else int(least + spare * budget),
                    count_tokens=counted,
                )


@pytest.mark.timeout(3600)  # All of them take ten minutes of a core.
def test_no_request_of_a_real_trace_becomes_one_that_a_provider_refuses() -> None:
    figures: Counter[str] = Counter()
    place = 0
    for name, messages in requests():
        question = next(message for message in reversed(messages) if message["role"] == "user")
        for policy in policies(messages):
            place += 1
            if not EVERY_TRACE and place % SAMPLED_POLICIES:
                continue
            figures["requests"] += 1
            told: tuple[Any, ...] = (name, len(messages), policy)
            try:
                fitted = fit_history(messages, policy)
            except QuestionDoesNotFit:
                figures["refused"] += 1
                assert policy.token_budget is not None, told
                assert most_that_must_stay(messages, policy) > policy.token_budget, told
                continue
            sent = fitted.messages
            figures["trimmed"] += fitted.history_trimmed
            figures["iterations left out"] += fitted.receipt.iterations_dropped > 0
            figures["results shortened or cut"] += fitted.receipt.results_shortened + fitted.receipt.results_cut > 0
            assert violations(sent) == [], told
            assert sent[-1]["role"] in ("user", "tool"), told
            assert any(message is question for message in sent), told
            if policy.token_budget is not None:
                assert count_messages(sent, counted) <= policy.token_budget, told
    assert figures["requests"] > 1_000
    assert min(figures.values()) > 0
    print(dict(figures))
