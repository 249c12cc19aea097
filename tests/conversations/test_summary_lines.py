"""The lines of a summary name their turns: found again by words, read back as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.conversations.summary_lines import SummaryLine, read_lines, with_turns

TOLD = [
    SummaryLine((1,), "My cat is called Mimi. I live in Kent."),
    SummaryLine((2,), "When do I shear sheep? Shear sheep in May."),
    SummaryLine((3,), "My dog Rex has fleas. Call the vet, Dr. Osei."),
    SummaryLine((4,), "Thanks!"),
]


def test_each_sentence_names_the_turns_that_it_was_made_of() -> None:
    written = "The user has a cat, Mimi, and a dog, Rex.\n- Sheep are sheared in May. The vet is Dr. Osei.\n"
    assert with_turns(written, TOLD).split("\n") == [
        "Turns 1 and 3: The user has a cat, Mimi, and a dog, Rex.",
        "Turn 2: Sheep are sheared in May.",
        "Turn 3: The vet is Dr. Osei.",
    ]


def test_a_sentence_that_has_little_of_any_turn_names_all() -> None:
    assert with_turns("Turn 2: All went well.", TOLD) == "Turns 1 to 4: All went well."


def test_lines_of_a_summary_hand_their_turns_on() -> None:
    told = read_lines("Turns 2, 4 and 6 to 9: Geese were fed.\nTurn 11, User: The lamp burns oil.\nThe boat is old.")
    assert [line.turns for line in told] == [(2, 4, 6, 7, 8, 9), (11,), ()]
    assert with_turns("They fed geese. The lamp burns oil.", told) == (
        "Turns 2, 4 and 6 to 9: They fed geese.\nTurn 11: The lamp burns oil."
    )
    assert with_turns("An old boat.", told) == "An old boat."


def test_many_scattered_turns_are_named_as_a_span() -> None:
    told = [SummaryLine((number,), "The same.") for number in range(1, 20, 2)]
    assert with_turns("The same.", told) == "Turns 1 to 19: The same."


@pytest.mark.parametrize("text", ["Turn by turn they spoke.", "Turning 3: no.", "3: no."])
def test_what_only_looks_like_a_lead_is_text(text: str) -> None:
    assert read_lines(text) == [SummaryLine((), text)]


@given(st.sets(st.integers(1, 40), min_size=1, max_size=12))
def test_what_a_line_names_is_read_back(numbers: set[int]) -> None:
    told = [SummaryLine((number,), "geese") for number in sorted(numbers)]
    (line,) = read_lines(with_turns("Geese.", told))
    assert line.text == "Geese."
    assert numbers <= set(line.turns)
