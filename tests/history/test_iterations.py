"""The tool iterations of the running turn."""

from typing import Any

import pytest

from rag_assistant.history import HistoryPolicy, fit_history, keep_last_iterations
from rag_assistant.records import Message
from tests.history.test_properties import violations
from tests.shared_data import shared_jsonl


def iteration(*ids: str, answered: int | None = None) -> list[Message]:
    calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in ids]
    results: list[Message] = [{"role": "tool", "tool_call_id": one, "content": f"found {one}"} for one in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results[:answered]]


QUESTION: Message = {"role": "user", "content": "Find it."}
STEERING: Message = {"role": "user", "content": "And hurry."}


def test_the_last_iterations_stay_with_all_their_results() -> None:
    turn = [QUESTION, *iteration("a", "b", "c"), *iteration("d"), *iteration("e", "f")]
    kept = keep_last_iterations(turn, 2)
    assert list(kept.messages) == [QUESTION, *iteration("d"), *iteration("e", "f")]
    assert (kept.iterations_kept, kept.iterations_dropped, kept.messages_dropped) == (2, 1, 4)


def test_what_the_user_said_meanwhile_stays_in_its_place() -> None:
    turn = [QUESTION, *iteration("a"), STEERING, *iteration("b"), *iteration("c")]
    assert list(keep_last_iterations(turn, 1).messages) == [QUESTION, STEERING, *iteration("c")]


def test_none_of_them_is_asked_for() -> None:
    assert keep_last_iterations([QUESTION, *iteration("a")], 0).messages == (QUESTION,)


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


def test_every_request_of_every_real_trace_stays_valid_at_every_limit() -> None:
    requests = 0
    for trace in shared_jsonl("tool_traces/traces.jsonl")[::10]:
        messages = trace["messages"]
        ends = [place for place, message in enumerate(messages) if message["role"] in ("user", "tool")]
        for end in ends[:: max(1, len(ends) // 8)]:
            sent = messages[: end + 1]
            question = next(message for message in reversed(sent) if message["role"] == "user")
            for limit in (0, 1, 2, 3, 5, 10, 50):
                policy = HistoryPolicy(max_history_turns=limit, tool_iterations_keep=limit)
                fitted = fit_history(sent, policy).messages
                assert [v for v in violations(fitted[:-1]) if "result without" in v] == [], trace["_id"]
                assert question in fitted, trace["_id"]
                requests += 1
    assert requests > 1000
