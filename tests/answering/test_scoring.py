"""How an answer to a rated question is measured, and when it counts as better or worse."""

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from rag_assistant.answering.scoring import Score, compare, score_of, verdict_of
from rag_assistant.records import Rating, Source, Turn

FERRY = "The ferry leaves the harbour at nine and takes forty cars to the island."
LAMP = "The lamp of the lighthouse burns rapeseed oil and is trimmed every four hours."
NOW = datetime.now(UTC)


def source(n: int, text: str, document: int = 1, *, cited: bool = False, doubts: int = 0, name: str = "") -> Source:
    marks: list[dict[str, Any]] = [{}] * doubts
    return Source(n, document, name or f"{document}.txt", None, 0, len(text), text, 1.0, cited=cited, doubts=marks)


def turn(answer: str, *sources: Source, rating: Literal["up", "down"] = "up", right: str | None = None) -> Turn:
    rated = Rating(rating, 1, NOW, right)
    return Turn(1, 1, 1, "completed", "When?", answer, NOW, sources=sources, rating=rated)


def test_a_good_answer_is_whole_by_its_own_measure() -> None:
    good = turn("At nine [2].", source(1, LAMP), source(2, FERRY, cited=True))
    assert score_of(good, good) == Score(found=2, cited=True, doubts=0, share=1.0, answer=True)


def test_a_passage_is_known_again_when_its_document_was_cut_anew_or_added_again() -> None:
    good = turn("At nine [1].", source(1, FERRY, cited=True))
    for again in (
        source(1, FERRY[:40]), source(1, f"{FERRY} {LAMP}"), source(1, FERRY, 7, name="1.txt"),
    ):  # fmt: skip
        assert score_of(good, turn("", again)).found == 1
    for other in (source(1, LAMP), source(1, FERRY, 2)):
        assert score_of(good, turn("", other)).found == 0


@pytest.mark.parametrize(
    ("right", "answer", "there"),
    [
        ("At nine.", "The ferry leaves AT  nine, every day.", True),
        ("at nine", "It leaves at ninety.", False),
        ("The ferry takes 40 cars to the island", "40 cars are taken to the island by the ferry.", True),
        ("The ferry takes 40 cars to the island", "The ferry takes 30 cars to the island.", False),
        ("oil", "It burns rapeseed oil [1].", True),
        ("1", "It burns rapeseed oil [1].", False),
    ],
)
def test_the_right_answer_is_there_as_it_stands_or_with_its_numbers_and_most_of_its_words(
    right: str, answer: str, there: bool
) -> None:
    assert score_of(turn("", rating="down", right=right), turn(answer)).answer is there


def test_a_bad_answer_is_no_measure_but_for_its_doubts() -> None:
    bad = turn("At ten [1].", source(1, FERRY, cited=True, doubts=1), rating="down")
    assert score_of(bad, bad) == Score(found=None, cited=None, doubts=1, share=None, answer=None)
    assert compare(score_of(bad, bad), score_of(bad, turn("No."))) == {"claims": "better"}


def test_the_right_answer_says_which_passages_are_right() -> None:
    bad = turn("At ten [1].", source(1, LAMP, cited=True), source(2, FERRY), rating="down", right="nine")
    now = turn("At nine [2].", source(1, LAMP), source(2, FERRY, cited=True))
    checks = compare(score_of(bad, bad), score_of(bad, now))
    assert checks == {"found": "same", "cited": "better", "claims": "same", "answer": "better"}


def test_where_a_passage_is_found_does_not_count_and_worse_outweighs_better() -> None:
    one, other = Score(1, False, 0, 1.0, True), Score(9, True, 2, 0.6, True)
    checks = compare(one, other)
    assert checks == {"found": "same", "cited": "better", "claims": "worse", "answer": "same"}
    assert verdict_of(checks) == "worse"
    assert verdict_of({"found": "same", "cited": "better"}) == "better"
    assert verdict_of({}) == "same"
