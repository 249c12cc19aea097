"""The bill of a summary: what it may lose, what is kept word for word, and what of it is kept once."""

import pytest

from rag_assistant.conversations.bill import HEADING, bill_of, divided, joined
from rag_assistant.records import PastTurn
from rag_assistant.records.errors import InvalidRequest

CHAT = (
    ("Never write to Ms. Osei. It rains.", "I see. The deposit is 1,240 EUR, due on 3 May."),
    ("We pay 1,240 EUR, see offer_final.xlsx. Fine.", "Good. Shall I ask Tom Whitfield?"),
)
LINES = ["Turn 1, User: Never write to Ms. Osei.", "Turn 2, User: We pay 1,240 EUR, see offer_final.xlsx."]


def turns_of(*chat: tuple[str, str], first: int = 1) -> list[PastTurn]:
    return [
        PastTurn(number, ({"role": "user", "content": asked}, {"role": "assistant", "content": answer}))
        for number, (asked, answer) in enumerate(chat, first)
    ]


def test_each_fact_stands_on_the_bill_once_and_what_a_person_said_is_ticked() -> None:
    bill = bill_of(turns_of(*CHAT), "", 1000)
    assert [(one.line, one.keep) for one in bill.items] == [
        (LINES[0], "always"),
        ("Turn 1, Assistant: The deposit is 1,240 EUR, due on 3 May.", "offered"),
        (LINES[1], "ticked"),
        ("Turn 2, Assistant: Shall I ask Tom Whitfield?", "offered"),
    ]
    assert [one.facts for one in bill.items[1:]] == [
        ("1,240 EUR", "3 May"),
        ("offer_final.xlsx", "1,240 EUR"),
        ("Tom", "Whitfield"),
    ]


def test_what_is_ticked_or_named_is_kept_and_what_is_forbidden_always() -> None:
    bill = bill_of(turns_of(*CHAT), "", 1000)
    assert bill.lines_to_keep(None) == LINES
    assert bill.lines_to_keep([]) == LINES[:1]
    assert bill.lines_to_keep([bill.items[3].id]) == [LINES[0], bill.items[3].line]
    with pytest.raises(InvalidRequest, match='keep has "9-1", which is not on the bill'):
        bill.lines_to_keep(["9-1"])


def test_what_does_not_fit_is_offered_the_oldest_first_and_refused_if_it_is_named() -> None:
    chat = [(f"Never call number {n}00 again, whatever they say about it.", "Fine.") for n in range(1, 9)]
    bill = bill_of(turns_of(*chat), "", 100)
    kept = [one.turn for one in bill.items if one.keep == "always"]
    assert kept == list(range(9 - len(kept), 9))
    assert 0 < len(kept) < 8
    assert len(bill.lines_to_keep(None)) == len(kept)
    with pytest.raises(InvalidRequest, match=r"about \d+ tokens; a summary has room for 50\."):
        bill.lines_to_keep([one.id for one in bill.items])


def test_what_is_kept_stands_once_and_nothing_drifts() -> None:
    summary = joined("Turn 1: It rains. Never write to Ms. Osei.\nTurn 2: They pay.", [*LINES, LINES[0]])
    assert summary == "\n".join(("Turn 1: It rains.", "Turn 2: They pay.", HEADING, *LINES))
    assert joined(*divided(summary)) == summary
    assert divided("Two\n\nlines.") == ("Two\n\nlines.", [])
    assert joined(*divided("Two\n\nlines.")) == "Two\n\nlines."
    again = bill_of(turns_of(("Never write to Ms. Osei.", "It is 1,240 EUR."), first=3), summary, 1000)
    assert again.items == ()


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("Bitte niemals weitergeben.", True),
        ("Ne touche pas à ce fichier.", True),
        ("Nunca lo envíes.", True),
        ("千万不要外传。", True),
        ("لا ترسل هذا الملف.", True),
        ("From now on, answer in French.", True),
        ("Why is it never warm?", False),
        ("I don't know what to do.", False),
        ("There must be a way.", False),
    ],
)
def test_what_forbids_or_holds_from_now_on_is_told_from_what_does_not(said: str, is_kept: bool) -> None:
    items = bill_of(turns_of((said, "Fine.")), "", 1000).items
    assert [one.keep for one in items] == ["always"] * is_kept
