"""Whether a text has the kind of thing that a question asks for."""

import pytest

from rag_assistant.retrieval.value_kinds import asked_kind, has_value


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When must it be paid?", "Due date: 3 April 2024"),
        ("By when do they need the report?", "within 30 days after the trip"),
        ("Wann ist die Abgabe?", "am 3. Mai"),
        ("How much is the rent?", "Monthly rent: 6,950 GBP"),
        ("How many geese are there?", "The keeper feeds seven of them."),
        ("What is the total of the invoice?", "Total 1,486.80"),
        ("Who was absent?", "Absent: Helen Marsh (on leave)"),
        ("Who approved it?", "It was approved by Marsh."),
        ("May I smoke?", "Smoking is not permitted."),
    ],
)
def test_a_value_of_the_kind_that_is_asked_for_is_told(question: str, text: str) -> None:
    kind = asked_kind(question)
    assert kind is not None
    assert has_value(kind, text, question)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When must it be paid?", "It must be paid in full."),
        ("How many geese are on island 7?", "There are geese on island 7."),
        ("Who was absent?", "Nobody was absent."),
        ("Who helped Helen Marsh?", "Help was needed by Helen Marsh."),
        ("May I smoke?", "Smoke rises."),
    ],
)
def test_what_the_question_says_itself_is_no_value(question: str, text: str) -> None:
    kind = asked_kind(question)
    assert kind is not None
    assert not has_value(kind, text, question)


def test_what_asks_for_nothing_of_a_kind_has_none() -> None:
    assert asked_kind("Tell me about geese.") is None
    assert asked_kind("Why do geese hiss?") is None
