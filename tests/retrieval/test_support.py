"""Whether passages answer a question, only come near, or have nothing to do with it."""

from collections.abc import Sequence

import pytest

from rag_assistant.records import Passage
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.support import MAX_SENTENCES, support_of

TEXT = "The lamps of the lighthouse burn oil. The keeper feeds seventeen geese."
ISLAND = [Passage(1, 1, "island.md", 0, len(TEXT), TEXT, None, 0.5)]


def support(question: str, best_cosine: float | None, sentence: float, chunks: int = 10) -> str:
    return support_of(SearchQuery(question), ISLAND, best_cosine, chunks, lambda _, texts: [sentence] * len(texts))


def test_what_is_near_by_words_and_meaning_is_found_without_looking_at_sentences() -> None:
    def refuse(_query: SearchQuery, _texts: Sequence[str]) -> Sequence[float]:
        raise AssertionError

    assert support_of(SearchQuery("How many geese does the keeper feed?"), ISLAND, 0.6, 10, refuse) == "found"


def test_what_is_about_something_else_finds_nothing() -> None:
    assert support("Which parliament votes about taxation?", 0.3, 0.2) == "nothing_found"


def test_one_near_sentence_is_enough_where_the_passage_is_far() -> None:
    assert support("Do the geese get breakfast?", 0.3, 0.7) != "nothing_found"
    assert support("Do the geese get breakfast?", 0.3, 0.1) == "nothing_found"


@pytest.mark.parametrize(("sentence", "embedded"), [(0.9, 1), (0.1, MAX_SENTENCES)])
def test_a_second_sentence_is_embedded_where_the_first_does_not_decide(sentence: float, embedded: int) -> None:
    texts: list[str] = []

    def compare(_query: SearchQuery, some: Sequence[str]) -> Sequence[float]:
        texts.extend(some)
        return [sentence] * len(some)

    support_of(SearchQuery("Do the geese get breakfast?"), ISLAND, 0.3, 10, compare)
    assert len(texts) == embedded


def test_what_lacks_a_word_of_the_question_is_only_near() -> None:
    assert support("What is the salary of the keeper?", 0.45, 0.3) == "near"
    assert support("Does the keeper feed geese?", 0.45, 0.3) == "found"


def test_for_a_model_only_what_may_be_unrelated_is_looked_at_more_closely() -> None:
    sentences: list[str] = []

    def compare(_query: SearchQuery, some: Sequence[str]) -> Sequence[float]:
        sentences.extend(some)
        return [0.1] * len(some)

    def judged(question: str, best_cosine: float) -> str:
        return support_of(SearchQuery(question), ISLAND, best_cosine, 10, compare, for_model=True)

    assert judged("What is the salary of the keeper?", 0.45) == "found"
    assert not sentences
    assert judged("What is the telephone number of the keeper?", 0.9) == "near", "No passage has a number."
    assert not sentences
    assert judged("Which parliament votes about taxation?", 0.3) == "nothing_found"
    assert sentences


ROOMS = """| Room | Who | Size |
|---|---|---|
| Hall 1 | Workshop | 220 |
| Hall 2 | Forklift trainer | 340 |
| Hall 3 | Paint shop team | 340 |"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How large is Hall 2?", "found"),
        ("Where is the forklift trainer sitting?", "near"),
        ("How large is a hall?", "found"),
        ("Where does the paint shop meet?", "near"),
        ("Who measured 220?", "near"),
        ("What is the colour of Hall 2?", "near"),
        ("Where was the first accident in Hall 2?", "near"),
    ],
)
def test_a_table_answers_what_it_has_all_words_of(question: str, expected: str) -> None:
    passages = [Passage(1, 1, "rooms.md", 0, len(ROOMS), ROOMS, None, 0.5)]
    assert support_of(SearchQuery(question), passages, 0.3, 10, lambda _, texts: [0.35] * len(texts)) == expected


def test_in_a_large_library_more_is_needed() -> None:
    assert [support("What is the salary of the keeper?", 0.25, 0.3, chunks) for chunks in (10, 100_000)] == [
        "near",
        "nothing_found",
    ]


@pytest.mark.parametrize(("question", "expected"), [("lamps of the parliament", "found"), ("taxes", "nothing_found")])
def test_where_vectors_say_nothing_the_words_decide(question: str, expected: str) -> None:
    assert support(question, None, 0.9) == expected
    assert support_of(SearchQuery(question), ISLAND, 0.9, 10, None) == expected


def test_of_no_passages_nothing_is_found_and_of_many_sentences_few_are_looked_at() -> None:
    assert support_of(SearchQuery("geese"), [], 0.5, 10, lambda _, texts: [1.0] * len(texts)) == "nothing_found"
    text = "A goose eats. " * 40 + " ".join(f"Sentence {n} ends." for n in range(40))
    many = [Passage(1, 1, "a.md", 0, len(text), text, None, 0.5)]
    looked_at: list[str] = []
    support_of(SearchQuery("Why?"), many, 0.1, 10, lambda _, texts: looked_at.extend(texts) or [0.0])  # type: ignore[func-returns-value]
    assert len(looked_at) == MAX_SENTENCES


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is the telephone number of the lighthouse?", "Call 0131 555 017."),
        ("What is the fax number of the lighthouse?", "Phone and fax: 0131 555 017."),
        ("What is the email address of the lighthouse?", "Write to keeper@lighthouse.example."),
        ("Which version of the lighthouse is this?", "Lamps 2.1 burn oil."),
        ("Who is the insurer of the lighthouse?", "The lighthouse is insured by Alba Mutual."),
        ("What is the price of the lighthouse?", "A visit is free."),
    ],
)
def test_a_kind_of_thing_is_not_found_where_there_is_none(question: str, value: str) -> None:
    def found(text: str) -> str:
        passages = [Passage(1, 1, "island.md", 0, len(text), text, None, 0.5)]
        return support_of(SearchQuery(question), passages, 0.9, 10, lambda _, texts: [0.9] * len(texts))

    assert [found("The lighthouse stands here."), found(f"The lighthouse. {value}")] == ["near", "found"]


def test_how_many_and_how_much_are_no_words_that_a_passage_must_have() -> None:
    assert support("How many geese?", 0.2, 0.3) == "found"


def test_a_question_that_leans_need_not_stand_in_one_passage_with_what_it_leans_on() -> None:
    query = SearchQuery("And what do lamps burn?", "Which tax did the parliament of the mainland vote about?", 0.8)
    assert support_of(query, ISLAND, 0.4, 10, lambda _, texts: [0.4] * len(texts)) == "found"


def test_a_part_number_in_the_name_of_the_document_is_there() -> None:
    text = "The valve weighs 12 kilograms and is replaced every two years."
    datasheet = [Passage(1, 1, "AB-1234X valve.md", 0, len(text), text, None, 0.5)]
    for asked, support in (("How much does valve AB1234X weigh?", "found"), ("How much does AB1299X weigh?", "near")):
        assert support_of(SearchQuery(asked), datasheet, 0.6, 10, lambda _, texts: [0.9] * len(texts)) == support
