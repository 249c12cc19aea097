"""A record of turns without a model: whole sentences, under their turns, about a quarter of the length."""

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.conversations.summary_lines import LEAD, extract, shortened_record
from rag_assistant.history import estimate_tokens
from rag_assistant.records import PastTurn

CHAT = [
    ("I run a farm in Kent with 340 sheep. I like it here. It is nice.", "That sounds lovely. How can I help you?"),
    ("It is nice here today. What should I know?", f"{LEAD}\n\n> The vet Dr. Amara Osei comes on Tuesdays. [1]"),
    ("And then? It is nice.", "Sheep need shearing in May. It is nice. That sounds lovely."),
    ("It is nice. " * 30, "That sounds lovely. " * 30),
]


def turns_of(chat: list[tuple[str, str]]) -> list[PastTurn]:
    return [
        PastTurn(number, ({"role": "user", "content": asked}, {"role": "assistant", "content": answer}))
        for number, (asked, answer) in enumerate(chat, 1)
    ]


def test_what_is_new_is_kept_word_for_word_under_its_turn() -> None:
    record = extract(turns_of(CHAT), 1000)
    assert "Turn 1, User: I run a farm in Kent with 340 sheep." in record
    assert "Turn 2, Assistant: The vet Dr. Amara Osei comes on Tuesdays." in record
    assert record.count("nice") <= 1
    assert LEAD not in record
    assert "[1]" not in record


def test_a_record_keeps_to_its_room_but_is_never_empty() -> None:
    assert extract(turns_of([("Hi.", "Hello.")]), 0) in ("Turn 1, User: Hi.", "Turn 1, Assistant: Hello.")
    for room in (5, 20, 40):
        lines = extract(turns_of(CHAT * 9), room).split("\n")
        assert sum(estimate_tokens(line.split(": ", 1)[1]) for line in lines) <= max(room, 40)


def test_what_somebody_else_wrote_stays_when_a_record_is_shortened() -> None:
    record = extract(turns_of(CHAT), 1000)
    shorter = shortened_record(f"They met in May.\nAll was well.\n{record}", estimate_tokens(record) / 2)
    assert shorter.startswith("They met in May.\nAll was well.\nTurn ")
    assert len(shorter) < len(record)
    assert all(line in record for line in shorter.split("\n")[2:])


WORDS = st.lists(st.sampled_from("geese lamp boat oil 17 May is the a. Why? - | \n # [1] Turn 1, User: x".split(" ")))


@given(st.lists(st.tuples(WORDS.map(" ".join), WORDS.map(" ".join)), min_size=1, max_size=6), st.integers(0, 60))
def test_every_record_is_made_of_what_was_said(chat: list[tuple[str, str]], room: int) -> None:
    record = extract(turns_of(chat), room)
    said = {" ".join(text.split()) for turn in chat for text in turn}
    for line in filter(None, record.split("\n")):
        for word in line.split(": ", 1)[1].split():
            assert any(word in text for text in said)
    assert len(shortened_record(record, room / 2)) <= len(record)
