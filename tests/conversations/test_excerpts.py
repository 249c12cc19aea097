"""A long text is quoted where it has most to do with what is asked."""

import time

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.conversations.prompts import excerpt
from tests.history.examples import many_examples

FILLING = "The sea is calm today. " * 60


def test_a_short_text_comes_whole() -> None:
    assert excerpt("Geese hiss.", ["boat"], 20) == "Geese hiss."


def test_the_part_comes_that_holds_the_words() -> None:
    part = excerpt(f"{FILLING}The boat was sold to Ada in May. {FILLING}", ["boat", "sold"], 100)
    assert "The boat was sold to Ada in May." in part
    assert (part[0], part[-1]) == ("…", "…")


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    assert "The boat is green." in excerpt(f"{FILLING}The boat is green. {FILLING}", ["sea", "boat"], 100)


def test_the_end_of_a_text_is_not_marked_as_cut() -> None:
    part = excerpt(f"{FILLING}The boat is green.", ["boat"], 100)
    assert part.startswith("… The sea is calm today.")
    assert part.endswith("The boat is green.")
    assert len(part) > 80


def test_without_such_a_word_the_text_comes_from_its_beginning() -> None:
    assert excerpt("One two. " * 100, ["geese"], 20) == "One two. One two. On …"


def test_forms_of_a_word_are_found() -> None:
    assert "bicycles" in excerpt(f"{FILLING}We have bicycles. {FILLING}", ["bicycle"], 60)


def test_a_text_without_blanks_is_cut_anywhere() -> None:
    part = excerpt("天" * 900 + "猫吃鱼。" + "天" * 900, ["猫吃", "吃鱼"], 400)
    assert "猫吃鱼" in part


def test_a_long_line_costs_little() -> None:
    began = time.process_time()
    excerpt("word without an end " * 20_000, ["boat"], 1500)
    assert time.process_time() - began < 3


@many_examples
@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=5), max_size=3), st.integers(1, 50))
def test_an_excerpt_is_a_part_of_its_text(text: str, words: list[str], max_chars: int) -> None:
    part = excerpt(text, words, max_chars)
    assert len(part) <= max_chars + 4
    if len(text) > max_chars:
        bare = part.removeprefix("… ").removesuffix(" …")
        assert bare in text
