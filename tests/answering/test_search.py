"""Which of a model's queries are searched with: those that ask what was asked, in words that were said."""

import pytest

from rag_assistant.answering.search import why_refused

SAID = [("What does a bicycle cost on Saturdays?", "A bicycle costs 12 dollars at the pier of Lindau.")]


@pytest.mark.parametrize(
    ("question", "query", "refused"),
    [
        ("And on Sundays?", "What does a bicycle cost on Sundays?", None),
        ("And on Sundays?", "bicycle cost Sundays", None),
        ("Where is it?", "Where is the pier of Lindau", None),
        ("Where is it rented?", "Where are bicycles rented at the pier?", None),
        ("And on Sundays?", "The bicycle costs 10 dollars on Sundays.", "statement"),
        ("And for 3 hours on Sundays?", "What does a bicycle cost on Sundays?", "number"),
        ("And on which pier?", "pier", "adds nothing"),
        ("Who rents tandems and trailers?", "What does a bicycle cost?", "words of the question are missing"),
        ("Where is it?", "Where is the Eiffel Tower in Paris, France?", "neither the question"),
    ],
)
def test_a_query_is_taken_only_if_it_asks_what_was_asked(question: str, query: str, refused: str | None) -> None:
    why = why_refused(question, query, SAID)
    assert (why is None) is (refused is None), why
    assert refused is None or refused in str(why)
