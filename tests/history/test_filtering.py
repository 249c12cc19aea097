"""The adaptive filter: what a conversation is made of, and which turns are worth sending."""

import pytest

from rag_assistant.history import TURNS_WORTH_READING, HistoryPolicy, analyse_history, fit_history
from rag_assistant.history.window import choose_turns
from rag_assistant.records import Message
from tests.history.conversations import NOW, SYSTEM, assistant, iteration, tool_turn, turn, turns, user, without_notice

SMART = HistoryPolicy(strategy="smart", max_history_turns=None)
PASSAGES: Message = {"role": "user", "content": "[passages]", "meta": {"kind": "context_injection"}}


def test_up_to_two_turns_stay_as_they_are() -> None:
    fitted = fit_history([SYSTEM, *turns(2), NOW], SMART)
    assert fitted.messages == [SYSTEM, *turns(2), NOW]
    assert not fitted.history_trimmed


def test_of_up_to_five_turns_the_newest_stays_and_then_one_that_used_tools() -> None:
    fitted = fit_history([SYSTEM, *turn(1), *tool_turn(2), *turn(3), *turn(4), NOW], SMART)
    assert without_notice(fitted) == [SYSTEM, *tool_turn(2), *turn(4), NOW]
    assert fitted.notice == "[History trimmed to last 1 turns and 1 before them]"
    assert fitted.receipt.explanation == "4 completed turns (up to 5): 2 kept, those with tools first."
    assert {run.reason for run in fitted.receipt.left_out} == {"filtered"}


def test_of_more_turns_the_newest_stays() -> None:
    fitted = fit_history([*turns(6), NOW], SMART)
    assert without_notice(fitted) == [*turn(6), NOW]
    assert fitted.receipt.explanation == "6 completed turns (more): 1 kept."


@pytest.mark.parametrize("with_tools", [5, 6])
def test_of_more_turns_two_stay_when_one_of_the_last_two_used_tools(with_tools: int) -> None:
    past = [message for n in range(1, 7) for message in (tool_turn(n) if n == with_tools else turn(n))]
    fitted = fit_history([*past, NOW], SMART)
    assert fitted.receipt.kept_turns == (5, 6)
    assert fitted.receipt.explanation == "6 completed turns (more): 2 kept, as one of the last 2 used tools."


def test_the_window_is_the_most_that_the_filter_keeps() -> None:
    policy = HistoryPolicy(strategy="smart", max_history_turns=1)
    assert fit_history([*turns(2), NOW], policy).receipt.kept_turns == (2,)


def test_a_pinned_turn_comes_back_past_the_filter() -> None:
    policy = HistoryPolicy(strategy="smart", max_history_turns=None, pinned=(1,))
    assert fit_history([*turns(7), NOW], policy).receipt.kept_turns == (1, 7)


def test_one_or_two_turns_stay() -> None:
    sizes = {len(choose_turns([uses] * total, total)[0]) for total in range(2, 9) for uses in (False, True)}
    assert sizes == {1, 2}


def test_the_turns_that_decide_are_few() -> None:
    assert TURNS_WORTH_READING == 5
    long = [message for n in range(1, 101) for message in (tool_turn(n) if n % 2 else turn(n))]
    numbers = tuple(range(96, 102))
    few = HistoryPolicy(strategy="smart", max_history_turns=None, turn_numbers=numbers)
    kept = fit_history([*long, NOW], SMART).receipt.kept_turns
    newest = [message for n in range(96, 101) for message in (tool_turn(n) if n % 2 else turn(n))]
    assert set(kept) <= set(fit_history([*newest, NOW], few).receipt.kept_turns)


def test_passages_beside_an_earlier_question_go_and_those_beside_the_current_one_stay() -> None:
    fitted = fit_history([SYSTEM, PASSAGES, *turn(1), PASSAGES, NOW], SMART)
    passages = {"role": "user", "content": "[passages]"}
    assert fitted.messages == [SYSTEM, *turn(1), passages, NOW]
    assert not fitted.history_trimmed


def test_passages_alone_make_no_turn() -> None:
    messages = [user("Q1"), *iteration("a"), PASSAGES, assistant("A1"), NOW]
    structure = analyse_history(messages)
    assert len(structure.segments) == 1
    assert structure.labels == ("completed", "completed", "completed", "injected_before", "completed", "current")


def test_a_turn_whose_only_question_was_put_there_stays_whole() -> None:
    fitted = fit_history([PASSAGES, assistant("A1"), *turn(2), NOW], SMART)
    assert [message["content"] for message in fitted.messages] == ["[passages]", "A1", "Q2", "A2", "now"]


def test_what_is_said_and_called_now_is_told_apart_from_what_was() -> None:
    structure = analyse_history([SYSTEM, *tool_turn(1), NOW, *iteration("a", "b", answered=1)])
    assert structure.labels == ("system", *["completed"] * 4, "current", "active", "active")
    assert [(segment.first, segment.last, segment.uses_tools) for segment in structure.segments] == [(1, 4, True)]
    assert structure.open_calls == ("b",)
