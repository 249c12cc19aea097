"""trim_history: which messages the model sees."""

import copy
from typing import Any

import pytest

from rag_assistant.history import HistoryPolicy, fit_history, trim_history
from rag_assistant.records import Message
from rag_assistant.records.errors import InvalidHistoryLimit

SYSTEM = {"role": "system", "content": "Be brief."}


def turns(count: int) -> list[dict[str, Any]]:
    return [
        message
        for n in range(1, count + 1)
        for message in ({"role": "user", "content": f"Q{n}"}, {"role": "assistant", "content": f"A{n}"})
    ]


QUESTION = {"role": "user", "content": "now"}


def test_the_newest_turns_stay_with_the_system_message_in_front() -> None:
    messages, dropped = trim_history([SYSTEM, *turns(7), QUESTION], 5)
    assert messages == [SYSTEM, *turns(7)[4:], QUESTION]
    assert dropped == 4


def test_exactly_n_turns_are_not_a_trim() -> None:
    conversation = [SYSTEM, *turns(5), QUESTION]
    assert trim_history(conversation, 5) == (conversation, 0)


def test_zero_keeps_no_past_turn() -> None:
    assert trim_history([SYSTEM, *turns(3), QUESTION], 0) == ([SYSTEM, QUESTION], 6)


def test_none_keeps_everything() -> None:
    conversation = [SYSTEM, *turns(30), QUESTION]
    assert trim_history(conversation, None) == (conversation, 0)


def test_a_turn_with_tool_calls_counts_as_one_and_stays_whole() -> None:
    tool_turn: list[dict[str, Any]] = [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": ""}, {"id": ""}]},
        {"role": "tool", "tool_call_id": "", "content": "1"},
        {"role": "tool", "tool_call_id": "", "content": "2"},
        {"role": "assistant", "content": "A"},
    ]
    messages, dropped = trim_history([SYSTEM, *turns(2), *tool_turn, QUESTION], 1)
    assert messages == [SYSTEM, *tool_turn, QUESTION]
    assert dropped == 4


def test_what_the_user_adds_while_tools_run_belongs_to_the_current_turn() -> None:
    running: list[dict[str, Any]] = [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "user", "content": "and also"},
    ]
    messages, dropped = trim_history([SYSTEM, *turns(2), *running], 0)
    assert messages == [SYSTEM, *running]
    assert dropped == 4


def test_the_input_is_not_changed() -> None:
    conversation = [SYSTEM, *turns(4), QUESTION]
    before = copy.deepcopy(conversation)
    trim_history(conversation, 1)
    assert conversation == before


@pytest.mark.parametrize("value", [-1, 2.0, 2.5, "5", "", True, False, [], float("nan")])
def test_anything_but_a_whole_number_from_0_or_none_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidHistoryLimit, match="max_history_turns") as refused:
        trim_history([QUESTION], value)  # type: ignore[arg-type]
    assert isinstance(refused.value, ValueError)
    assert repr(value) in str(refused.value)


def test_no_turn_begins_between_a_call_and_its_result() -> None:
    call: Message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}],
    }
    messages: list[Message] = [
        {"role": "user", "content": "first"},
        call,
        {"role": "user", "content": "and hurry"},
        {"role": "tool", "tool_call_id": "a", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
        {"role": "user", "content": "second"},
    ]
    assert trim_history(messages, 1) == (messages, 0)
    assert trim_history(messages, 0) == (messages[-1:], 5)


def test_system_messages_in_parts_are_merged() -> None:
    system = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    turn = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    policy = HistoryPolicy(max_history_turns=0, merge_system_messages=True)
    fitted = fit_history([system, *turn, {"role": "user", "content": "3"}], policy)
    assert fitted.messages[0]["content"] == "Be brief.\n\n[History trimmed to last 0 turns]"
