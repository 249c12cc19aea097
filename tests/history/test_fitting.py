"""fit_history: what the model sees, what it is told, and what the receipt says."""

from itertools import pairwise

import pytest

from rag_assistant.history import HistoryPolicy, HistorySummary, fit_history, left_out
from rag_assistant.records import Message, text_in
from rag_assistant.records.errors import InvalidRequest
from tests.history.conversations import NOW, SYSTEM, assistant, iteration, turn, turns, user, without_notice


def test_a_pinned_turn_comes_back_in_its_place_and_the_notice_tells_of_it() -> None:
    fitted = fit_history([SYSTEM, *turns(8), NOW], HistoryPolicy(max_history_turns=2, pinned=(3,)))
    assert without_notice(fitted) == [SYSTEM, *turn(3), *turn(7), *turn(8), NOW]
    assert fitted.messages[1] == {"role": "system", "content": "[History trimmed to last 2 turns and 1 before them]"}
    assert fitted.receipt.kept_turns == (3, 7, 8)
    assert [(run.first_turn, run.last_turn) for run in fitted.receipt.left_out] == [(1, 2), (4, 6)]


def test_a_pinned_turn_in_the_window_takes_no_other_turns_place() -> None:
    fitted = fit_history([*turns(4), NOW], HistoryPolicy(max_history_turns=2, pinned=(4,)))
    assert fitted.receipt.kept_turns == (3, 4)
    assert fitted.notice == "[History trimmed to last 2 turns]"


def test_a_pinned_turn_right_before_the_window_makes_the_window_longer() -> None:
    fitted = fit_history([*turns(4), NOW], HistoryPolicy(max_history_turns=2, pinned=(2,)))
    assert fitted.notice == "[History trimmed to last 3 turns]"


def test_the_notice_stays_the_same_while_the_window_is_full() -> None:
    policy = HistoryPolicy(max_history_turns=3)
    notices = {fit_history([SYSTEM, *turns(count), NOW], policy).notice for count in range(4, 12)}
    assert notices == {"[History trimmed to last 3 turns]"}


def test_with_slack_the_beginning_of_the_request_stays_while_the_start_of_the_window_stands() -> None:
    policy = HistoryPolicy(max_history_turns=3, window_slack=2, pinned=(1,))
    beginnings = []
    for count in range(7, 13):
        fitted = fit_history([SYSTEM, *turns(count), NOW], policy)
        beginnings.append(fitted.messages[: len(fitted.messages) - 1])
    stays = [longer[: len(shorter)] == shorter for shorter, longer in pairwise(beginnings)]
    assert stays == [True, False, True, True, False]
    assert {messages[1]["content"] for messages in beginnings} == {
        "[History trimmed to at least the last 3 turns and 1 before them]"
    }


@pytest.mark.parametrize("merged", [False, True])
def test_fitting_again_and_again_leaves_one_notice(merged: bool) -> None:
    policy = HistoryPolicy(max_history_turns=2, window_slack=1, merge_system_messages=merged, pinned=(1,))
    said = [SYSTEM, *turns(5), NOW]
    for n in range(6, 9):
        fitted = fit_history(said, policy)
        said = [*fitted.messages, assistant(f"A{n}"), NOW]
    assert fitted.notice is not None
    assert sum(text_in(message).count("[History trimmed") for message in fitted.messages) == 1
    assert "\n".join(text_in(one) for one in fitted.messages if one["role"] == "system").split() == [
        *"Be brief.".split(), *fitted.notice.split(),
    ]  # fmt: skip


def test_an_old_notice_is_no_turn_and_still_says_that_turns_are_missing() -> None:
    notice: Message = {"role": "system", "content": "[History trimmed to last 2 turns]"}
    fitted = fit_history([*turn(1), notice, *turn(2), notice, NOW], HistoryPolicy(max_history_turns=2))
    assert fitted.messages == [notice, *turn(1), *turn(2), NOW]
    assert (fitted.history_trimmed, fitted.notice) == (True, notice["content"])
    fewer = fit_history(fitted.messages, HistoryPolicy(excluded=(1,)))
    assert fewer.notice == "[History trimmed to last 1 turns]"
    again = fit_history([*fitted.messages, assistant("So."), user("And?")], HistoryPolicy(max_history_turns=1))
    assert (again.notice, again.receipt.turns_dropped) == ("[History trimmed to last 1 turns]", 2)
    assert (fitted.history_trimmed, fitted.receipt.turns_total) == (True, 2)
    completed = fit_history([*turn(1), *turn(2), notice], HistoryPolicy(max_history_turns=1))
    assert completed.receipt.turns_total == 2


def test_what_a_person_says_about_the_notice_stays() -> None:
    asked = [user("[History trimmed to last 2 turns]"), assistant("[History trimmed to last 2 turns]"), NOW]
    assert fit_history(asked, HistoryPolicy()).messages == asked


def test_an_excluded_turn_is_not_a_trim() -> None:
    fitted = fit_history([SYSTEM, *turns(3), NOW], HistoryPolicy(max_history_turns=2, excluded=(2,)))
    assert fitted.messages == [SYSTEM, *turn(1), *turn(3), NOW]
    assert (fitted.history_trimmed, fitted.notice) == (False, None)
    assert [(run.reason, run.first_turn, run.trimmed) for run in fitted.receipt.left_out] == [("excluded", 2, False)]
    assert (fitted.receipt.turns_total, fitted.receipt.turns_kept, fitted.receipt.turns_dropped) == (3, 2, 0)


def test_exclusion_goes_before_a_pin() -> None:
    fitted = fit_history([*turns(2), NOW], HistoryPolicy(pinned=(1,), excluded=(1,)))
    assert fitted.messages == [*turn(2), NOW]


def test_each_turn_that_is_left_out_has_its_own_reason() -> None:
    unread = (left_out("cleared", 2, 4, 1, 2), left_out("turn_limit", 1, 2, 3, 3))
    policy = HistoryPolicy(max_history_turns=2, unread=unread, excluded=(6,))
    fitted = fit_history([*turn(4), *turn(5), *turn(6), *turn(7), NOW], policy)
    assert without_notice(fitted) == [*turn(5), *turn(7), NOW]
    assert [(run.reason, run.first_turn, run.last_turn) for run in fitted.receipt.left_out] == [
        ("cleared", 1, 2), ("turn_limit", 3, 4), ("excluded", 6, 6),
    ]  # fmt: skip
    assert (fitted.receipt.turns_total, fitted.receipt.turns_dropped, fitted.receipt.messages_dropped) == (7, 2, 4)


def test_a_summary_is_quoted_behind_the_system_block_and_the_notice() -> None:
    summary = HistorySummary("They chose blue.", 1, 6)
    fitted = fit_history([SYSTEM, *turns(3), NOW], HistoryPolicy(max_history_turns=2, summary=summary))
    assert [message["role"] for message in fitted.messages[:4]] == ["system", "system", "user", "assistant"]
    assert fitted.messages[1]["content"] == "[History trimmed to last 2 turns]"
    assert "Turns 1 to 6" in fitted.messages[2]["content"]
    assert "<summary>\nThey chose blue.\n</summary>" in fitted.messages[2]["content"]
    assert fitted.messages[4:] == [*turn(2), *turn(3), NOW]
    assert fitted.receipt.summary_sent
    alone = fit_history([NOW], HistoryPolicy(summary=HistorySummary("They chose blue.", 1, 1))).messages[0]["content"]
    assert alone.startswith("Turn 1 of this conversation is not shown. ")


def test_a_summary_cannot_close_its_fence() -> None:
    summary = HistorySummary("a </summary> b < / SUMMARY > c <summary>", 1, 2)
    quoted = fit_history([NOW], HistoryPolicy(summary=summary)).messages[0]["content"]
    assert quoted.lower().count("<summary>") == quoted.lower().count("</summary>") == 1
    assert quoted.endswith("\n</summary>")


def test_the_turns_behind_a_summary_are_numbered_on() -> None:
    fitted = fit_history([*turns(2), NOW], HistoryPolicy(summary=HistorySummary("Before.", 1, 6)))
    assert fitted.receipt.kept_turns == (7, 8)


def test_a_turn_that_a_summary_stands_for_comes_back_when_it_is_pinned_and_is_no_trim_otherwise() -> None:
    policy = HistoryPolicy(summary=HistorySummary("Before.", 1, 2), pinned=(2,), turn_numbers=(1, 2, 3, 4))
    fitted = fit_history([*turns(3), NOW], policy)
    assert fitted.messages[2:] == [*turn(2), *turn(3), NOW]
    assert [(run.reason, run.first_turn) for run in fitted.receipt.left_out] == [("summarised", 1)]
    assert not fitted.history_trimmed


def test_a_system_message_between_two_turns_leaves_with_the_first_of_them() -> None:
    hint: Message = {"role": "system", "content": "Hint."}
    fitted = fit_history([SYSTEM, *turn(1), *turn(2), hint, NOW], HistoryPolicy(max_history_turns=0))
    assert without_notice(fitted) == [SYSTEM, NOW]
    assert fitted.receipt.turns_dropped == 2


def test_a_system_message_at_the_very_end_waits_for_an_answer() -> None:
    hint: Message = {"role": "system", "content": "Say it shorter."}
    fitted = fit_history([*turn(1), *turn(2), hint], HistoryPolicy(max_history_turns=0))
    assert without_notice(fitted) == [*turn(2), hint]


def test_a_greeting_is_not_what_a_request_begins_with() -> None:
    fitted = fit_history([SYSTEM, assistant("Welcome!"), *turn(1), NOW], HistoryPolicy())
    assert fitted.messages == [SYSTEM, *turn(1), NOW]
    greeted = fit_history([SYSTEM, assistant("Welcome!"), NOW], HistoryPolicy())
    assert greeted.messages == [SYSTEM, NOW]
    assert greeted.receipt.tokens["history"] == 0


def test_turn_numbers_that_do_not_reach_lose_no_turn() -> None:
    steered = [user("Q2"), *iteration("a"), user("and hurry"), assistant("A2")]
    fitted = fit_history([*turn(1), *steered, *turn(3), NOW], HistoryPolicy(turn_numbers=(1, 2, 3)))
    assert fitted.messages == [*turn(1), *steered, *turn(3), NOW]


def test_the_unread_turns_count_for_the_flag_and_not_for_the_messages() -> None:
    policy = HistoryPolicy(max_history_turns=2, unread=(left_out("turn_limit", 40, 80, 1, 40),))
    fitted = fit_history([*turns(2), NOW], policy)
    assert fitted.history_trimmed
    assert fitted.receipt.first_kept_turn == 41
    assert (fitted.receipt.turns_total, fitted.receipt.messages_dropped) == (42, 80)


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match='history_strategy is "clever"'):
        fit_history([NOW], HistoryPolicy(strategy="clever"))  # type: ignore[arg-type]


def test_turns_outside_the_window_are_not_counted_in_tokens() -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    fitted = fit_history([*turns(5000), NOW], HistoryPolicy(token_budget=10**6, count_tokens=count))
    assert (fitted.receipt.turns_total, fitted.receipt.messages_dropped) == (5000, 9990)
    assert fitted.receipt.first_kept_turn == 4996
    assert len(counted) < 200
