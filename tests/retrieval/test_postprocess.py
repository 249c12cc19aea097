"""What of the found passages is sent: each text once, neighbours as one, within a budget."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_assistant.history import estimate_tokens
from rag_assistant.records import Passage
from rag_assistant.retrieval.postprocess import distinct, joined, within_budget

TEXT = "".join(f"Sentence {n} is about thing{n}. " for n in range(60))


def passage(number: int, start: int, end: int, document_id: int = 1, gap: int | None = None) -> Passage:
    """Return a piece of the text, behind a gap of so many characters if it touches the one before."""
    before = None if gap is None else TEXT[start - gap : start]
    return Passage(number, document_id, "name", start, end, TEXT[start:end], None, 1.0 - number / 100, gap=before)


def said(number: int, text: str) -> Passage:
    return Passage(number, number, "name", 0, len(text), text, None, 1.0)


def test_chunks_that_touch_become_one_with_the_text_between() -> None:
    first, second = passage(2, 0, 27), passage(1, 29, 60, gap=2)
    assert joined([second, first]) == [passage(1, 0, 60)]


def test_a_chunk_joins_its_neighbours_on_both_sides() -> None:
    found = [passage(1, 100, 200, gap=1), passage(2, 0, 99), passage(3, 201, 300, gap=1)]
    assert joined(found) == [passage(1, 0, 300)]


def test_chunks_of_two_documents_or_that_do_not_touch_stay_apart() -> None:
    assert len(joined([passage(1, 0, 50), passage(2, 50, 99, document_id=2, gap=0)])) == 2
    assert len(joined([passage(1, 0, 50), passage(2, 50, 99)])) == 2
    assert len(joined([passage(1, 0, 40), passage(2, 50, 99, gap=2)])) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 99), st.booleans()), max_size=8), st.randoms())
def test_joined_passages_hold_every_character_once_and_the_best_stays_first(
    lengths: list[tuple[int, int, bool]], chance: Random
) -> None:
    places, end = [], 0
    for gap, length, touches in lengths:
        places.append((end + gap, end + gap + length, gap if touches and end else None))
        end += gap + length
    chance.shuffle(places)
    found = [passage(number, start, stop, gap=gap) for number, (start, stop, gap) in enumerate(places)]
    result = joined(found)
    assert all(one.text == TEXT[one.start : one.end] for one in result)
    for one in found:
        assert any(whole.start <= one.start and one.end <= whole.end for whole in result)
    assert [one.chunk_id for one in result] == sorted(one.chunk_id for one in result)
    assert not found or result[0].chunk_id == 0


def test_what_one_document_says_twice_comes_once() -> None:
    same = [said(1, "Geese hiss at night."), said(2, "GEESE  hiss at night"), said(3, "Boats float.")]
    in_one = [replace(one, document_id=7) for one in same]
    assert [one.chunk_id for one in distinct(in_one)] == [1, 3]


def test_what_many_documents_say_comes_from_the_best_two() -> None:
    assert [one.chunk_id for one in distinct([said(number, "Geese hiss.") for number in range(5)])] == [0, 1]


def test_passages_that_share_some_words_both_stay() -> None:
    assert len(list(distinct([said(1, "Geese hiss at night."), said(2, "Geese hiss at noon.")]))) == 2


@given(st.lists(st.integers(1, 60), max_size=8), st.integers(0, 400))
def test_all_but_the_first_fit_into_the_budget(lengths: list[int], budget: int) -> None:
    found = [said(number, "word " * length) for number, length in enumerate(lengths)]
    kept = within_budget(found, budget)
    assert kept[:1] == found[:1]
    assert len(kept) <= 1 or sum(estimate_tokens(one.text) for one in kept) <= budget
    assert within_budget(found, None) == found


def test_a_passage_that_does_not_fit_is_skipped() -> None:
    found = [said(1, "word " * 10), said(2, "word " * 500), said(3, "word " * 10)]
    assert [one.chunk_id for one in within_budget(found, 60)] == [1, 3]


def test_of_versions_that_differ_by_a_figure_four_are_sent() -> None:
    policy = "All employees who work full time have a leave of {} days in each calendar year, and may take it at once."
    texts = [said(number, policy.format(20 + number)) for number in range(6)]
    versions = [replace(one, document=f"leave-{2020 + n}.md") for n, one in enumerate(texts)]
    assert [one.chunk_id for one in distinct(versions)] == [0, 1, 2, 3]
    others = [replace(one, document=f"leave of {name}.md") for name, one in zip("abcdef", texts, strict=True)]
    assert [one.chunk_id for one in distinct(others)] == [0, 1]
