"""The tool iterations of the running turn."""

from typing import Any

import pytest

from rag_assistant.history import HistoryPolicy, fit_history, keep_last_iterations
from rag_assistant.records import Message
from tests.history.conversations import iteration

QUESTION: Message = {"role": "user", "content": "Find it."}
STEERING: Message = {"role": "user", "content": "And hurry."}


def test_the_last_iterations_stay_with_all_their_results() -> None:
    turn = [QUESTION, *iteration("a", "b", "c"), *iteration("d"), *iteration("e", "f")]
    kept = keep_last_iterations(turn, 2)
    assert list(kept.messages) == [QUESTION, *iteration("d"), *iteration("e", "f")]
    assert (kept.iterations_kept, kept.iterations_dropped, len(turn) - len(kept.messages)) == (2, 1, 4)


def test_what_the_user_said_meanwhile_stays_in_its_place() -> None:
    turn = [QUESTION, *iteration("a"), STEERING, *iteration("b"), *iteration("c")]
    assert list(keep_last_iterations(turn, 1).messages) == [QUESTION, STEERING, *iteration("c")]


def test_none_of_them_is_asked_for() -> None:
    assert keep_last_iterations([QUESTION, *iteration("a")], 0).messages == (QUESTION,)


def test_what_the_assistant_said_before_a_call_leaves_with_it() -> None:
    said: Message = {"role": "assistant", "content": "Let me look."}
    turn = [QUESTION, said, *iteration("a"), said, *iteration("b", answered=0)]
    assert list(keep_last_iterations(turn, 1).messages) == turn
    assert list(keep_last_iterations(turn, 0).messages) == [QUESTION, said, *iteration("b", answered=0)]
    assert list(keep_last_iterations(turn[:4], 0).messages) == [QUESTION]


def test_an_open_iteration_is_never_counted_and_never_cut() -> None:
    turn = [QUESTION, *iteration("a"), *iteration("b"), *iteration("c", "d", answered=1)]
    kept = keep_last_iterations(turn, 1)
    assert list(kept.messages) == [QUESTION, *iteration("b"), *iteration("c", "d", answered=1)]
    assert list(keep_last_iterations(turn, 0).messages) == [QUESTION, *iteration("c", "d", answered=1)]


def test_a_call_that_waits_for_a_person_is_never_cut() -> None:
    turn = [QUESTION, *iteration("confirm"), *iteration("b"), *iteration("c")]
    assert list(keep_last_iterations(turn, 1, {"confirm"}).messages) == [
        QUESTION, *iteration("confirm"), *iteration("c"),
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [-1, 1.0, "2", True])
def test_a_wrong_limit_is_refused_by_name(limit: Any) -> None:
    with pytest.raises(ValueError, match="tool_iterations_keep is"):
        keep_last_iterations([QUESTION], limit)


def test_the_receipt_tells_of_iterations_and_the_flag_of_turns() -> None:
    fitted = fit_history([QUESTION, *iteration("a"), *iteration("b"), *iteration("c")], HistoryPolicy())
    assert (fitted.receipt.iterations_kept, fitted.receipt.iterations_dropped) == (2, 1)
    assert not fitted.history_trimmed
    assert fitted.notice is None
