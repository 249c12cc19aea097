"""What is kept of a later request, without a turn that was erased."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.history.erasing import may_lean_on, receipt_without, search_without
from rag_assistant.history.turns import repair_messages
from rag_assistant.records import Message

SYSTEM: Message = {"role": "system", "content": "Be brief."}
NOW: Message = {"role": "user", "content": "And now?"}


def turn(number: int) -> list[Message]:
    return [{"role": "user", "content": f"Question {number}"}, {"role": "assistant", "content": f"Answer {number}"}]


def receipt(*messages: Message, kept: tuple[int, ...], **more: Any) -> dict[str, Any]:
    body = {"request": {"model": "m", "messages": [SYSTEM, *messages, NOW]}, "kept_turns": list(kept)}
    return body | {"left_out": [], "earlier_requests": [], "recalled_turns": [], "prefix_sha256": "0"} | more


def texts(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["request"]["messages"]]


def test_the_turn_alone_goes_and_its_length_stays() -> None:
    body = receipt(*turn(3), *turn(4), kept=(3, 4))
    without = receipt_without(body, 3, 5)
    assert texts(without) == [
        "Be brief.", "[Erased: 10 characters]", "[Erased: 8 characters]", "Question 4", "Answer 4", "And now?",
    ]  # fmt: skip
    assert (without["erased_turns"], "prefix_sha256" in without) == ([3], False)
    assert "Question 3" in texts(body), "the input stays as it was"
    assert receipt_without(without, 4, 5)["erased_turns"] == [3, 4]


@pytest.mark.parametrize("number", [1, 2])
def test_a_receipt_that_holds_nothing_of_it_stays_as_it_is(number: int) -> None:
    kept = (3, 4, 5, 6)
    body = receipt(
        *(message for n in kept for message in turn(n)), kept=kept, search={"by": "words", "follow_up_context": "x"}
    )
    assert receipt_without(body, number, 4) is body


def test_equal_questions_are_told_apart_by_their_place() -> None:
    same = turn(1)
    without = receipt_without(receipt(*same, *same, kept=(1, 2)), 2, 5)
    assert texts(without)[1:5] == ["Question 1", "Answer 1", "[Erased: 10 characters]", "[Erased: 8 characters]"]


def test_of_tool_calls_the_form_stays_so_that_the_request_is_valid() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search_documents", "arguments": '{"query": "x"}'}}
    said: list[Message] = [
        {"role": "user", "content": "Question"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Found."},
        {"role": "assistant", "content": "Answer"},
    ]
    messages = receipt_without(receipt(*said, kept=(1,)), 1, 5)["request"]["messages"]
    assert messages[2]["tool_calls"] == [call | {"function": {"name": "search_documents", "arguments": "{}"}}]
    assert (messages[2]["content"], messages[3]["content"]) == (None, "[Erased: 6 characters]")
    assert repair_messages(messages) == messages


def test_a_summary_goes_if_it_was_made_of_the_turn() -> None:
    summary: list[Message] = [{"role": "user", "content": "Summary"}, {"role": "assistant", "content": "Read."}]
    run = {"reason": "summarised", "first_turn": 1, "last_turn": 3}
    body = receipt(*summary, *turn(4), kept=(4,), left_out=[run])
    assert texts(receipt_without(body, 2, 1))[1] == "[Erased: 7 characters]"
    assert texts(receipt_without(body, 4, 1))[1] == "Summary"


def test_where_the_turn_cannot_be_told_apart_all_earlier_turns_go() -> None:
    longer = {"messages": [SYSTEM, *turn(2), *turn(3), NOW]}
    without = receipt_without(receipt(*turn(3), kept=(3,), earlier_requests=[longer]), 2, 1)
    assert "Question 3" in texts(without)
    assert [message["content"][:7] for message in without["earlier_requests"][0]["messages"]] == [
        "Be brie", *["[Erased"] * 4, "And now",
    ]  # fmt: skip


def test_quotations_beside_the_question_go_if_one_is_of_the_turn() -> None:
    beside: Message = {"role": "user", "content": "Record:\n<earlier>\n(turn 2)\nUser: Secret\n</earlier>\n\nAnd now?"}
    body = receipt(beside, kept=())
    body["request"]["messages"].pop()
    assert (
        texts(receipt_without(body, 2, 0))[1] == "Record:\n<earlier>\n[Erased: 21 characters]\n</earlier>\n\nAnd now?"
    )
    assert receipt_without(body, 3, 0) is body


def test_what_a_follow_up_leant_on_goes_and_the_question_itself_stays() -> None:
    by_words = {"query": "And why?", "by": "words", "follow_up_context": "Secret", "found": 3}
    assert search_without(by_words) == by_words | {"follow_up_context": "[Erased: 6 characters]"}
    by_model = {"query": "Why secret", "by": "model", "follow_up_context": None, "found": 3}
    assert search_without(by_model) == by_model | {"query": "[Erased: 10 characters]"}
    rewrite = {"request": {"messages": [SYSTEM, NOW]}, "answer": "Why secret"}
    without = receipt_without(receipt(*turn(1), kept=(1,), rewrite=rewrite), 1, 5)["rewrite"]
    assert [message["content"] for message in without["request"]["messages"]] == ["Be brief.", "[Erased: 8 characters]"]
    assert without["answer"] == "[Erased: 10 characters]"
    body = receipt(*turn(1), kept=(1,), search=by_model, reading=[rewrite, rewrite])
    assert receipt_without(body, 1, 5)["reading"] == [without, without]
    assert receipt_without(body | {"search": by_words}, 1, 5)["reading"] == [rewrite, rewrite]


@pytest.mark.parametrize(
    ("number", "kept", "limit", "expected"),
    [
        (1, [1, 2, 3], 5, True),
        (1, [1, 2, 3, 4], 5, False),
        (1, [2, 3], 2, False),
        (1, [2, 3], 5, True),
        (1, [1, 3], 1, True),
        (1, [], 5, True),
        (1, [], 0, False),
        (1, [], None, True),
    ],
)
def test_a_question_leans_on_the_last_exchanges_that_were_seen(
    number: int, kept: list[int], limit: int | None, expected: bool
) -> None:
    assert may_lean_on(number, kept, limit) is expected


NUMBERS = st.sets(st.integers(1, 11), max_size=6).map(sorted)


@given(NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.integers(1, 11))
def test_nothing_of_an_erased_turn_is_left_in_a_later_receipt(
    kept: list[int], more: list[int], recalled: list[int], summarised: bool, number: int
) -> None:
    before = sorted({*kept, *more})  # A request that is made again leaves turns out.
    quoted = "".join(f"(turn {n})\nUser: x\n" for n in recalled)
    beside: Message = {"role": "user", "content": f"Record:\n<earlier>\n{quoted}</earlier>\n\nAnd now?"}
    left_out: list[dict[str, Any]] = []
    summary: list[Message] = []
    if summarised:
        left_out = [{"reason": "summarised", "first_turn": 2, "last_turn": 4}]
        summary = [{"role": "user", "content": "Summary"}, {"role": "assistant", "content": "Read."}]
    earlier = {"messages": [SYSTEM, *summary, *(message for n in before for message in turn(n)), beside]}
    said = [*summary, *(message for n in kept for message in turn(n))]
    body = receipt(*said, kept=tuple(kept), earlier_requests=[earlier], left_out=left_out)
    left = json.dumps(receipt_without(body, number, None))
    assert [one for one in (f'Question {number}"', f'Answer {number}"', f"(turn {number})") if one in left] == []
