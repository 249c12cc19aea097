"""Whether a question leans on the conversation before it, and on what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.retrieval.follow_up import (
    MAX_SHARE,
    SearchQuery,
    Similarity,
    compared_with,
    context_of,
    search_query,
)

LAMP = [("Who lit the lamp?", "The keeper lit the lamp with oil of whales.")]
NEAR = Similarity(conversation=0.5, library=0.55)
FAR = Similarity(conversation=0.05, library=0.7)

texts = st.text(max_size=30)
exchanges = st.lists(st.tuples(texts, texts), max_size=5)
cosines = st.floats(-1, 1)


def test_the_first_question_of_a_conversation_stands_alone() -> None:
    assert search_query("And why?", []) == SearchQuery("And why?")
    assert not search_query("And why?", [("", " ")]).is_follow_up


def test_a_question_nearer_to_the_conversation_than_others_leans() -> None:
    asked = search_query("Which oil burns the longest time?", LAMP, NEAR)
    assert asked.is_follow_up
    assert asked.text == "Which oil burns the longest time?"
    assert asked.context == "Who lit the lamp? The keeper lit the lamp with oil of whales."


def test_a_question_much_nearer_to_the_library_stays_as_it_is() -> None:
    assert search_query("Which taxes does parliament raise?", LAMP, FAR) == SearchQuery(
        "Which taxes does parliament raise?"
    )


def test_a_question_near_to_nothing_stays_as_it_is() -> None:
    nowhere = Similarity(conversation=0.02, library=0.1)
    assert not search_query("Which taxes does parliament raise?", LAMP, nowhere).is_follow_up


@pytest.mark.parametrize("question", ["And why?", "What about it?", "Who was that?"])
def test_a_question_without_a_telling_word_leans_on_whatever_was_said(question: str) -> None:
    assert search_query(question, LAMP, FAR).share == MAX_SHARE


def test_a_single_telling_word_leans_unless_the_library_is_much_nearer() -> None:
    assert search_query("And whales?", LAMP, Similarity(0.02, 0.4)).is_follow_up
    assert not search_query("Kubernetes?", LAMP, FAR).is_follow_up


@pytest.mark.parametrize(
    ("question", "unknown", "leans"),
    [
        ("What is the capital of Mongolia?", {"capital", "mongolia"}, False),
        ("What is the population of Brazil?", {"population", "brazil"}, False),
        ("Where is it stored?", {"stored"}, True),
        ("And which setting changes that?", set(), True),
        ("How large is the mast of the lighthouse?", {"mast"}, True),
        ("And the goose?", {"goose"}, True),
        ("What else?", {"else"}, True),
    ],
)
def test_a_question_about_what_nothing_speaks_of_leans_on_nothing(
    question: str, unknown: set[str], leans: bool
) -> None:
    before = [("How large may a goose be?", "A goose may be 50 cm large.")]
    query = search_query(question, before, Similarity(conversation=0.2, library=0.1), unknown)
    assert query.is_follow_up is leans


def test_the_nearer_the_conversation_the_more_it_counts() -> None:
    shares = [
        search_query("Which oil burns longest?", LAMP, Similarity(near, 0.6)).share for near in (0.1, 0.3, 0.4, 0.7)
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == MAX_SHARE


@pytest.mark.parametrize(
    ("question", "before", "leans"),
    [
        ("Und warum?", ("Wer zündete die Lampe an?", "Der Wärter."), True),
        ("Womit zündete der Wärter damals die Lampe an?", ("Wer zündete die Lampe an?", "Der Wärter."), True),
        ("Welche Steuern erhebt unser Parlament heute?", ("Wer zündete die Lampe an?", "Der Wärter."), False),
        ("为什么呢?", ("谁点亮了灯塔?", "看守人点亮了灯塔。"), True),
        ("议会今年决定征收哪些新的税?", ("谁点亮了灯塔?", "看守人点亮了灯塔。"), False),
    ],
)
def test_without_vectors_the_words_decide_in_any_language(question: str, before: tuple[str, str], leans: bool) -> None:
    assert search_query(question, [before]).is_follow_up is leans


def test_the_context_is_the_last_questions_and_the_beginning_of_the_last_answer() -> None:
    past = [(f"question {n}", f"answer {n}") for n in range(5)]
    assert context_of(past) == "question 2 question 3 question 4 answer 4"
    assert len(context_of([("q", "long " * 1000)])) < 310
    assert compared_with(past) == ["question 4", "question 2 question 3 question 4 answer 4"]
    assert compared_with([]) == []


@given(question=texts, past=exchanges, similarity=st.none() | st.builds(Similarity, cosines, cosines))
def test_the_question_itself_is_never_changed(
    question: str, past: list[tuple[str, str]], similarity: Similarity | None
) -> None:
    asked = search_query(question, past, similarity)
    assert asked.text == question
    assert bool(asked.context) == asked.is_follow_up == (asked.share > 0)
    assert 0 <= asked.share <= MAX_SHARE
