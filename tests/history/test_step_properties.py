"""What must hold for each step of the history by itself, whatever it is given: checked on generated ones."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.history import (
    analyse_history,
    checked_summary,
    estimate_tokens,
    repair_messages,
    split_turns,
    trim_history,
    turns_in_window,
)
from rag_assistant.history.turns import is_injected
from rag_assistant.records import Message
from rag_assistant.records.errors import SummaryRejected
from tests.history.conversations import LIMITS, conversations, violations
from tests.history.examples import many_examples


@many_examples
@given(conversations(), LIMITS)
def test_the_plain_window_keeps_system_block_and_current_turn_and_changes_nothing(
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


@many_examples
@given(conversations(), st.integers(0, 9))
def test_a_larger_plain_window_begins_earlier_and_ends_the_same(messages: list[Message], limit: int) -> None:
    block = len(split_turns(messages).system)
    smaller, _ = trim_history(messages, limit)
    larger, _ = trim_history(messages, limit + 1)
    assert larger[len(larger) - len(smaller) + block :] == smaller[block:]


@many_examples
@given(st.integers(0, 500), st.integers(0, 50), st.integers(0, 30))
def test_the_window_with_slack_moves_in_steps_and_never_keeps_too_few(total: int, limit: int, slack: int) -> None:
    kept = turns_in_window(total, limit, slack)
    assert min(total, limit) <= kept <= limit + slack
    start, next_start = total - kept, total + 1 - turns_in_window(total + 1, limit, slack)
    assert start % (slack + 1) == 0
    assert next_start in (start, start + slack + 1)


@many_examples
@given(conversations())
def test_a_mended_list_is_valid_and_stays_as_it_is(messages: list[Message]) -> None:
    mended = repair_messages(messages)
    assert [violation for violation in violations(mended) if "result" in violation] == []
    assert repair_messages(mended) == mended
    assert [m for m in mended if m["role"] in ("user", "system")] == [
        m for m in messages if m["role"] in ("user", "system")
    ]


@many_examples
@given(conversations())
def test_every_message_has_one_label_and_every_completed_turn_is_one_segment(messages: list[Message]) -> None:
    structure, split = analyse_history(messages), split_turns(messages)
    assert len(structure.labels) == len(messages)
    assert [segment.last + 1 - segment.first for segment in structure.segments] == [len(turn) for turn in split.past]
    for label, message in zip(structure.labels, messages, strict=True):
        assert (label in ("injected", "injected_before")) is is_injected(message)
        assert label != "current" or message["role"] not in ("assistant", "tool")


@many_examples
@given(st.text(), st.integers(0, 60))
def test_a_summary_that_is_accepted_says_something_and_is_shorter(text: str, source_tokens: int) -> None:
    try:
        said = checked_summary(text, source_tokens, estimate_tokens)
    except SummaryRejected:
        return
    assert said.strip() == said != ""
    assert estimate_tokens(said) < source_tokens
    assert checked_summary(said, source_tokens, estimate_tokens) == said


@pytest.mark.parametrize("text", ["a", "ü", "漢字", "\ud800", "🙂" * 9, "x" * 5000])
def test_more_text_never_costs_less(text: str) -> None:
    assert 0 < estimate_tokens(text) <= estimate_tokens(text + text) <= 2 * estimate_tokens(text)
