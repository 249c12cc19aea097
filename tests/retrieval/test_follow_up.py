"""Whether a question leans on the conversation before it, and on what."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_assistant.retrieval.follow_up import (
    MIN_SHARE,
    SHARE_WITHOUT_WORDS,
    WEIGHTS,
    WEIGHTS_BY_QUESTIONS,
    SearchQuery,
    Similarity,
    beside_which,
    context_of,
    features,
    is_about_something_else,
    last_question,
    leaning,
    parts_of,
    search_query,
)

LAMP = [("Who lit the lamp?", "The keeper lit the lamp with oil of whales.")]


def similarity(library: float, *, same_chunks: bool = False, context_library: float = 0.7) -> Similarity:
    """Return what vectors say of a question that is so near to the library; the next chunks are farther by a step."""
    step = 0.01 if library < 0.4 else 0.03
    own = [(chunk, library - step * place) for place, chunk in enumerate(range(20))]
    others = [
        (chunk + (0 if same_chunks else 100), context_library - 0.01 * place) for place, (chunk, _) in enumerate(own)
    ]
    return Similarity(0.2, 0.2, own, others)


NEAR = similarity(0.7, same_chunks=True)
FAR = similarity(0.2)

texts = st.text(max_size=30)
exchanges = st.lists(st.tuples(texts, texts), max_size=5)
cosines = st.floats(-1, 1)
hits = st.lists(st.tuples(st.integers(1, 30), cosines), max_size=15).map(
    lambda some: sorted(some, key=lambda hit: -hit[1])
)


def test_the_first_question_of_a_conversation_stands_alone() -> None:
    assert search_query("And why?", []) == SearchQuery("And why?")
    assert not search_query("And why?", [("", " ")]).is_follow_up


def test_a_question_near_to_nothing_in_the_library_leans() -> None:
    asked = search_query("And which of them burns longest?", LAMP, FAR)
    assert asked.is_follow_up
    assert asked.text == "And which of them burns longest?"
    assert asked.context == "Who lit the lamp? The keeper lit the lamp with oil of whales."


def test_a_question_near_to_the_library_stays_as_it_is() -> None:
    question = "Which taxes does parliament raise on imported whale oil?"
    asked = search_query(question, LAMP, NEAR)
    assert (asked.text, asked.context, asked.share) == (question, "", 0.0)


def test_of_a_long_question_before_the_end_is_what_is_leant_on() -> None:
    pasted = "geese " * 1300 + "Who lit the lamp?"
    context = context_of([(pasted, "The keeper.")])
    assert context.endswith(" geese Who lit the lamp? The keeper.")
    assert len(context) == 1_000


@pytest.mark.parametrize("question", ["And why?", "What about it?", "Who was that?", "since when?"])
def test_a_question_without_a_telling_word_leans_on_whatever_was_said(question: str) -> None:
    assert search_query(question, LAMP, NEAR).share >= MIN_SHARE
    assert search_query("Why?", LAMP, NEAR).share >= SHARE_WITHOUT_WORDS


def test_what_was_found_while_telling_is_searched_with() -> None:
    leaning_query = search_query("And which of them burns longest?", LAMP, FAR)
    assert leaning_query.nearest == (FAR.library, FAR.context_library)
    alone = search_query("Which taxes does parliament raise on imported whale oil?", LAMP, NEAR)
    assert alone.nearest == (NEAR.library,)


def test_a_question_that_stands_alone_by_a_narrow_margin_says_so() -> None:
    asked = search_query("Which oil burns the longest in lamps?", LAMP, similarity(0.55))
    assert not asked.is_follow_up
    assert 0 < asked.leaning < MIN_SHARE


@pytest.mark.parametrize(
    ("question", "unknown", "leans"),
    [
        ("What is the capital of Mongolia?", {"capital", "mongolia"}, False),
        ("What is the population of Brazil?", {"population", "brazil"}, False),
        ("Where is it stored?", {"stored"}, True),
        ("And which setting changes that?", set(), True),
        ("And the goose?", {"goose"}, True),
        ("What else?", {"else"}, True),
        ("since when?", {"since"}, True),
        ("Seit wann?", {"seit"}, True),
    ],
)
def test_a_question_about_what_nothing_speaks_of_leans_on_nothing(
    question: str, unknown: set[str], leans: bool
) -> None:
    before = [("How large may a goose be?", "A goose may be 50 cm large.")]
    assert is_about_something_else(question, context_of(before), unknown) is not leans
    assert search_query(question, before, FAR).is_follow_up


def test_the_farther_the_library_the_more_the_conversation_counts() -> None:
    shares = [
        leaning("Which oil burns longest?", "Who lit the lamp?", similarity(near)) for near in (0.8, 0.6, 0.4, 0.2)
    ]
    assert shares == sorted(shares)


def test_each_figure_has_a_weight() -> None:
    assert ["constant", *features("Why?", "Who?", FAR)] == list(WEIGHTS) == list(WEIGHTS_BY_QUESTIONS)


def test_what_the_questions_alone_say_is_weighed_in_its_own_way() -> None:
    quick = replace(FAR, by_questions=True)
    assert leaning("Why?", "Who lit the lamp?", quick) != leaning("Why?", "Who lit the lamp?", FAR)


def test_an_empty_library_tells_nothing() -> None:
    assert 0 <= leaning("Which oil?", "Who lit the lamp?", Similarity(0.1, 0.1, [], [])) <= 1


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
    assert last_question(past) == "question 4"
    assert last_question([("", "A greeting.")]) == "A greeting."


@given(question=texts, past=exchanges, found=st.none() | st.builds(Similarity, cosines, cosines, hits, hits))
def test_the_question_itself_is_never_changed(
    question: str, past: list[tuple[str, str]], found: Similarity | None
) -> None:
    asked = search_query(question, past, found)
    assert asked.text == question
    assert bool(asked.context) == asked.is_follow_up == (asked.share > 0)
    assert 0 <= asked.share <= 1


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("What is the rent, and when does the lease end?", ["What is the rent", "when does the lease end?"]),
        ("Who feeds the geese? And which lamp burns oil?", ["Who feeds the geese", "which lamp burns oil?"]),
        ("Who feeds geese? Where is oil? Is tea free?", ["Who feeds geese?", "Where is oil?", "Is tea free?"]),
        ("Wer füttert die Gänse? Welche Lampe brennt?", ["Wer füttert die Gänse?", "Welche Lampe brennt?"]),
        ("谁喂鹅\uff1f哪盏灯烧油\uff1f", ["谁喂鹅\uff1f", "哪盏灯烧油\uff1f"]),
        ("Who feeds the geese? Which lamp burns? Answer briefly.", ["Who feeds the geese?", "Which lamp burns?"]),
    ],
)  # fmt: skip
def test_several_questions_in_one_are_several(question: str, parts: list[str]) -> None:
    assert parts_of(SearchQuery(question)) == [SearchQuery(part) for part in parts]


@pytest.mark.parametrize("text", ["geese ", "?", "\uff1f", "? "])
def test_a_long_text_is_looked_through_once(text: str) -> None:
    def cost(length: int) -> float:
        began = time.process_time()
        assert parts_of(SearchQuery("The keeper feeds " + text * length)) == []
        return time.process_time() - began

    cost(1000)
    assert cost(64_000) < 64 * max(cost(4_000), 0.001)  # Four times as much as 16 times the text takes.


def test_a_part_leans_on_the_one_before_where_it_points_back() -> None:
    _, second = parts_of(SearchQuery("What is a catch basin and how is it designed?"))
    assert (second.text, second.context, second.is_follow_up) == ("how is it designed?", "What is a catch basin", True)


@pytest.mark.parametrize(
    "question",
    [
        "What do the keeper and the harbour master eat?", "Who feeds the geese and the ducks?", "Who did it and why?",
        "What did the ECDC and WHO ask the countries for?",
        "What is the time between when it begins and when the lamp burns?",
        "Who feeds the geese? Why?", "Who feeds the geese? Answer briefly.", "Geese? Lamps? Oil? Tea?",
        "What is at https://a.example/x?page=2&lamp=oil?", "Who says \"which geese?\" at night?",
    ],
)  # fmt: skip
def test_one_question_stays_one(question: str) -> None:
    assert parts_of(SearchQuery(question)) == []


@pytest.mark.parametrize(
    ("question", "which"),
    [
        ("What did I say right after I told you about the boiler?", 1),
        ("What did we discuss before the hazelnuts?", -1),
        ("Was habe ich gesagt, nachdem wir über den Kessel gesprochen haben?", 1),
        ("You told me before that it is limited, didn't you?", 0),
        ("You talked about a bill before. How does it work?", 0),
        ("我在提到锅炉之后说了什么?", 1),
        ("Must the pump be off before the hatch is opened?", 0),
        ("What happens after the deposit is paid?", 0),
        ("What did I say about the boiler?", 0),
        ("Was hast du gefragt, bevor ich den Kessel erwähnt habe?", -1),
        ("Was habe ich nach dem Preis gefragt?", 0),
        ("Tell me what happens after the deposit is paid", 0),
        ("Should I ask my doctor before I take it?", 0),
    ],
)
def test_a_question_may_ask_for_what_was_said_before_or_after(question: str, which: int) -> None:
    text, asked = beside_which(question)
    assert asked == which
    assert (text == question) is (which == 0)
