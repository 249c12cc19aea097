"""The far past is only counted; what comes out is the same as if it had been looked at."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.history import HistoryPolicy, fit_history
from rag_assistant.history import turns as turns_module
from rag_assistant.records import Message
from tests.history.conversations import conversations
from tests.history.examples import many_examples
from tests.testkit.shared_data import shared_jsonl


def both_ways(messages: list[Message], policy: HistoryPolicy) -> bool:
    with patch.object(turns_module, "MIN_LIST_LENGTH", 0):
        quick = fit_history(messages, policy)
    with patch.object(turns_module, "MIN_LIST_LENGTH", 10**9):
        whole = fit_history(messages, policy)
    assert quick == whole
    return quick.history_trimmed


@many_examples
@given(conversations(), conversations(), st.integers(0, 4), st.integers(0, 3))
def test_generated_conversations_come_out_the_same(
    one: list[Message], other: list[Message], limit: int, slack: int
) -> None:
    joined = one + [message for message in other if message["role"] != "system"]
    both_ways(joined, HistoryPolicy(max_history_turns=limit, window_slack=slack))


def test_recorded_conversations_come_out_the_same() -> None:
    trimmed = 0
    for trace in shared_jsonl("tool_traces/traces.jsonl")[::7]:
        for limit in (0, 1, 3):
            trimmed += both_ways(trace["messages"], HistoryPolicy(max_history_turns=limit))
    assert trimmed > 50


def test_the_far_past_is_not_counted_in_tokens_or_looked_at() -> None:
    turns: list[Message] = []
    for n in range(5000):
        turns += [{"role": "user", "content": f"Q{n}"}, {"role": "assistant", "content": f"A{n}"}]
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    fitted = fit_history(
        [*turns, {"role": "user", "content": "now"}], HistoryPolicy(token_budget=10**6, count_tokens=count)
    )
    assert (fitted.receipt.turns_total, fitted.receipt.messages_dropped) == (5000, 9990)
    assert fitted.receipt.first_kept_turn == 4996
    assert len(counted) < 200
