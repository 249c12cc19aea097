"""Purging: a finished confirmation leaves the model's view."""

from rag_assistant.history import HistoryPolicy, fit_history
from rag_assistant.records import Message
from tests.history.conversations import NOW, SYSTEM, assistant, iteration, turn, user

ASKED: list[Message] = [user("Delete the drafts."), *iteration("confirm"), assistant("Found 5 documents. Delete them?")]
ANSWERED: list[Message] = [user("yes"), assistant("5 documents deleted.")]
DONE = HistoryPolicy(max_history_turns=2, purged=("confirm",))


def test_the_turn_that_asked_and_the_turn_that_answered_leave_together() -> None:
    fitted = fit_history([SYSTEM, *turn(1), *ASKED, *ANSWERED, *turn(4), NOW], DONE)
    assert fitted.messages == [SYSTEM, *turn(1), *turn(4), NOW]
    assert [(run.reason, run.first_turn, run.last_turn) for run in fitted.receipt.left_out] == [("purged", 2, 3)]


def test_purged_turns_are_no_trim_and_take_no_place_in_the_window() -> None:
    fitted = fit_history([*turn(1), *turn(2), *ASKED, *ANSWERED, NOW], DONE)
    assert fitted.receipt.kept_turns == (1, 2)
    assert (fitted.history_trimmed, fitted.notice) == (False, None)


def test_an_answer_that_is_the_current_question_stays() -> None:
    fitted = fit_history([SYSTEM, *turn(1), *ASKED, user("yes")], DONE)
    assert fitted.messages == [SYSTEM, *turn(1), user("yes")]


def test_a_confirmation_that_waits_stays_even_past_window_and_exclusion() -> None:
    policy = HistoryPolicy(max_history_turns=1, pending=("confirm",), excluded=(1,))
    fitted = fit_history([*ASKED, *turn(2), *turn(3), NOW], policy)
    assert fitted.receipt.kept_turns == (1, 3)


def test_only_the_turn_that_was_numbered_next_is_the_answer() -> None:
    policy = HistoryPolicy(pinned=(2,), purged=("confirm",), turn_numbers=(2, 8, 9))
    fitted = fit_history([*ASKED, *turn(8), NOW], policy)
    assert fitted.receipt.kept_turns == (8,)


def test_a_pin_does_not_bring_a_purged_turn_back() -> None:
    fitted = fit_history([*ASKED, *ANSWERED, NOW], HistoryPolicy(purged=("confirm",), pinned=(1, 2)))
    assert fitted.messages == [NOW]


def test_what_another_call_found_stays_with_the_answer_made_of_it() -> None:
    call, *results = iteration("look", "confirm")
    calls = call["tool_calls"]
    asked = [user("How many drafts? Delete them."), call, *results, assistant("Five. Delete them?")]
    fitted = fit_history([*asked, *ANSWERED, *turn(3), NOW], DONE)
    looked = [asked[0], {**call, "tool_calls": calls[:1]}, results[0], asked[-1]]
    assert fitted.messages == [*looked, *turn(3), NOW]
    assert fitted.receipt.kept_turns == (1, 3)


def test_what_was_done_upon_the_word_stays_under_the_question_that_asked_for_it() -> None:
    done = [*iteration("delete"), assistant("Deleted.")]
    fitted = fit_history(
        [SYSTEM, *turn(1), *ASKED, user("yes"), *done, *turn(4), NOW], HistoryPolicy(purged=("confirm",))
    )
    assert fitted.messages == [SYSTEM, *turn(1), ASKED[0], *done, *turn(4), NOW]
    assert [(run.reason, run.first_turn, run.last_turn) for run in fitted.receipt.left_out] == [("purged", 2, 2)]


def test_a_question_that_a_person_excluded_does_not_come_back_with_what_was_done() -> None:
    answered = [user("yes"), *iteration("delete"), assistant("Deleted.")]
    fitted = fit_history([*ASKED, *answered, NOW], HistoryPolicy(purged=("confirm",), excluded=(1,)))
    assert fitted.messages == [*answered, NOW]


def test_one_confirmation_can_follow_upon_another() -> None:
    again = [user("yes"), *iteration("sure"), assistant("Really?")]
    fitted = fit_history([*ASKED, *again, *ANSWERED, *turn(4), NOW], HistoryPolicy(purged=("confirm", "sure")))
    assert fitted.messages == [*turn(4), NOW]
