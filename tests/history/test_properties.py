"""What must hold for every conversation, however odd: checked on generated ones."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.errors import QuestionDoesNotFit
from rag_assistant.history import HistoryPolicy, fit_history, repair_messages, split_turns, trim_history
from rag_assistant.history.budget import count_message, estimate_tokens
from rag_assistant.history.fitting import notice_for

Message = dict[str, Any]
IDS = st.sampled_from(["a", "b", "", None])


@st.composite
def iterations(draw: st.DrawFn) -> list[Message]:
    ids = draw(st.lists(IDS, min_size=1, max_size=3))
    answered = draw(st.booleans()) or draw(st.booleans())
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
    results = [{"role": "tool", "tool_call_id": i, "content": "found"} for i in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *(results if answered else results[:-1])]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "s"}] * draw(st.integers(0, 2))
    if draw(st.booleans()):
        messages.append({"role": "assistant", "content": "hello"})
    for _ in range(draw(st.integers(0, 8))):
        messages += [{"role": "user", "content": draw(st.sampled_from(["yes", "q", ""]))}] * draw(st.integers(1, 2))
        for iteration in draw(st.lists(iterations(), max_size=2)):
            messages += iteration
        if draw(st.integers(0, 9)):
            messages.append({"role": "assistant", "content": "a"})
        if not draw(st.integers(0, 9)):
            messages.append({"role": "tool", "tool_call_id": "zz", "content": "orphan"})
    messages.append({"role": "user", "content": "now"})
    for iteration in draw(st.lists(iterations(), max_size=2)):
        messages += iteration
    return messages


def violations(messages: list[Message]) -> list[str]:
    """Return what a strict provider would refuse."""
    found, open_calls = [], 0
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if not open_calls:
                found.append(f"{place}: a result without a call")
            open_calls -= 1
            continue
        if open_calls:
            found.append(f"{place}: {open_calls} calls without a result")
        open_calls = len(message.get("tool_calls") or ())
    return found


LIMITS = st.one_of(st.none(), st.integers(0, 10))


@given(conversations(), LIMITS)
def test_the_window_keeps_system_block_and_current_turn_and_changes_nothing(
    messages: list[Message], limit: int | None
) -> None:
    before = copy.deepcopy(messages)
    kept, dropped = trim_history(messages, limit)
    split = split_turns(messages)
    assert messages == before
    assert len(kept) + dropped == len(messages)
    assert tuple(kept[: len(split.system)]) == split.system
    assert tuple(kept[len(kept) - len(split.current) :]) == split.current
    assert trim_history(kept, limit) == (kept, 0)


@given(conversations(), st.integers(0, 9))
def test_a_larger_window_never_keeps_less(messages: list[Message], limit: int) -> None:
    smaller, _ = trim_history(messages, limit)
    larger, _ = trim_history(messages, limit + 1)
    assert (
        larger[len(larger) - len(smaller) + len(split_turns(messages).system) :]
        == smaller[len(split_turns(messages).system) :]
    )


@given(conversations(), LIMITS)
def test_what_is_sent_is_valid_and_the_flag_tells_the_truth(messages: list[Message], limit: int | None) -> None:
    fitted = fit_history(messages, HistoryPolicy(max_history_turns=limit))
    past = len(split_turns(repair_messages(messages)).past)
    assert violations(fitted.messages) == []
    assert fitted.history_trimmed is (limit is not None and past > limit)
    assert (fitted.notice is not None) is fitted.history_trimmed
    assert fitted.receipt.turns_kept + fitted.receipt.turns_dropped == fitted.receipt.turns_total == past
    assert {"role": "user", "content": "now"} in fitted.messages
    assert fit_history(messages, HistoryPolicy(max_history_turns=limit)) == fitted


def tokens(messages: Sequence[Message]) -> int:
    return sum(count_message(message, estimate_tokens) for message in messages)


@given(conversations(), st.integers(0, 400))
def test_a_request_is_within_its_budget_or_refused(messages: list[Message], budget: int) -> None:
    everything = fit_history(messages, HistoryPolicy(max_history_turns=None))
    split = split_turns(everything.messages)
    notice = tokens([{"role": "system", "content": notice_for(len(split.past))}])
    policy = HistoryPolicy(max_history_turns=None, token_budget=budget)
    if tokens(split.system) + tokens(split.current) + notice > budget:
        with pytest.raises(QuestionDoesNotFit, match=str(budget)):
            fit_history(messages, policy)
        return
    fitted = fit_history(messages, policy)
    assert tokens(fitted.messages) == sum(fitted.receipt.tokens.values()) <= budget
    assert fitted.receipt.turns_kept == len(split.past) or fitted.receipt.reason == "token_limit"
    assert violations(fitted.messages) == []


@given(conversations())
def test_a_mended_list_is_valid_and_stays_as_it_is(messages: list[Message]) -> None:
    mended = repair_messages(messages)
    assert violations(mended) in ([], violations(mended)[-1:])
    assert repair_messages(mended) == mended
    assert [m for m in mended if m["role"] in ("user", "system")] == [
        m for m in messages if m["role"] in ("user", "system")
    ]
