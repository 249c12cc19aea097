"""A receipt is kept as references, and is read back as it was."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.history.references import as_stored, keeps, packed, references_in, unpacked
from rag_assistant.records import Message, PastTurn, Source, Turn

LONG = "It was said at such a length that keeping it twice would cost something. "
TEXTS = st.sampled_from(["Why?", LONG, LONG * 3, "x" * 72, "\ud800" * 80, "a\0" * 60]) | st.text(max_size=200)


def said(number: int, text: str = "") -> PastTurn:
    asked = {"role": "user", "content": f"Question {number}. {text}{LONG}"}
    return PastTurn(number, (asked, {"role": "assistant", "content": f"Answer {number}. {LONG}{text}"}))


def asked(number: int, **more: Any) -> Turn:
    question = f"Question {number}. {LONG}"
    return Turn(number, 1, number, "running", question, "", created_at=datetime(2026, 1, 1, tzinfo=UTC), **more)


def sent(*messages: Message) -> dict[str, Any]:
    return {"request": {"model": "m", "messages": list(messages)}, "kept_turns": [1, 2, 4]}


def read_back(body: dict[str, Any], texts: dict[str, str], turn: Turn, past: list[PastTurn]) -> dict[str, Any]:
    stored = {one.number: one.messages for one in past}
    stored[turn.number] = ({"role": "user", "content": turn.question}, *map(as_stored, turn.iterations))
    return unpacked(json.loads(json.dumps(body)), turn.search, stored.__getitem__, texts.__getitem__)


def as_bytes(receipt: dict[str, Any]) -> str:
    return json.dumps(receipt["request"])


@given(st.lists(TEXTS, min_size=1, max_size=6), st.lists(st.booleans(), min_size=9, max_size=9), TEXTS, TEXTS)
def test_whatever_is_sent_is_read_back(texts: list[str], whole: list[bool], passage: str, quoted: str) -> None:
    past = [said(number, text) for number, text in enumerate(texts, 1)]
    shown = [
        message if unchanged else message | {"content": message["content"][:90] + " …"}
        for one, unchanged in zip(past, whole, strict=False)
        for message in one.messages
    ]
    source = Source(1, 1, "d", None, 0, len(passage), passage, 0.5)
    call: Message = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "arguments": quoted}]}
    turn = asked(7, sources=(source,), iterations=(call, {"role": "tool", "tool_call_id": "a", "content": passage}))
    question = f"{quoted}{past[0].messages[1]['content'][:100]}\n[1] {passage}\n{turn.question}"
    receipt = sent({"role": "system", "content": LONG}, *shown, {"role": "user", "content": question}, *turn.iterations)
    body, kept, _ = packed(receipt, turn, past)
    assert as_bytes(read_back(body, kept, turn, past)) == as_bytes(receipt)


def test_turns_in_a_row_are_one_reference() -> None:
    past = [said(number) for number in range(1, 200)]
    turn = asked(200)
    messages = [message for one in past for message in one.messages]
    body, texts, _ = packed(sent(*messages, {"role": "user", "content": turn.question}), turn, past)
    assert body["request"]["messages"] == [[1, 199], {"role": "user", "content": {"~": [[200, 0]]}}]
    assert texts == {}
    assert [keeps(body["kept_turns"], number) for number in (2, 3, 4)] == [True, False, True]


def test_a_long_list_of_pieces_is_mostly_the_same_the_next_time() -> None:
    def texts_of(first: int, last: int) -> tuple[dict[str, Any], dict[str, str]]:
        past = [said(number) for number in range(first, last, 2)]
        messages = [message for one in past for message in one.messages]
        return packed(sent(*messages, {"role": "user", "content": "Why?"}), asked(500), past)[:2]

    (body, before), (_, after) = texts_of(1, 401), texts_of(1, 403)
    assert len(json.dumps(body)) < 1000
    new = [text for key, text in after.items() if key not in before]
    assert sum(map(len, new)) < 1000
    numbers = {one for one in references_in(body, before.__getitem__) if isinstance(one, int)}
    assert numbers == set(range(1, 401, 2))


def test_answers_that_were_chosen_are_named_with_their_version() -> None:
    past = [said(1), said(2)]
    messages = [message for one in past for message in one.messages]
    body, *_ = packed(sent(*messages), asked(3), past, (), {2: 4, 3: 2, 9: 5})
    assert body["versions"] == {"2": 4}


def test_a_receipt_without_references_stands_for_itself() -> None:
    receipt = sent({"role": "system", "content": LONG}, {"role": "user", "content": "Why?"})
    assert read_back(receipt, {}, asked(3), []) == receipt
