"""Words for keyword search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.retrieval.tokenize import LATIN_RUNS, MAX_QUERY_WORDS, NOT_LATIN, query_words, runs, search_words

# Marks and letters of other scripts among them, so that both ways are taken.
MIXED = st.text(
    st.one_of(st.characters(max_codepoint=0x3FF), st.sampled_from("\u2019\u2013 '_\u1e9e\u0e01\u4e00\u3042"))
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Keeper's log", ["the", "keeper's", "log"]),
        ("max_history_turns=5", ["max", "history", "turns", "5"]),
        ("Straße Ünïcode", ["straße", "ünïcode"]),
        ("ﬁle №5", ["file", "no5"]),
        ("机器学习", ["机器", "器学", "学习"]),
        ("用Python写", ["用", "python", "写"]),
        ("लड़कियाँ हिन्दी पढ़ती हैं।", ["लड़कियाँ", "हिन्दी", "पढ़ती", "हैं"]),
        ("தமிழ் வீடுகள்", ["தமிழ்", "வீடுகள்"]),
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("น้ำ", ["น้", "้ํ", "ํา"]),
        ("e\u0301te\u0301 x\u0323\u0300", ["été", "x\u0323\u0300"]),
        ("كِتَابٌ كتـــاب", ["كتاب", "كتاب"]),
        ("שָׁלוֹם", ["שלום"]),
        ("क्\u200dष नम\u200cस्ते", ["क्ष", "नमस्ते"]),
        ("Donau\u00addampf", ["donaudampf"]),
        ("\u0301 \u093f", []),
        ("", []),
        ("?!—", []),
    ],
)
def test_a_text_becomes_words(text: str, words: list[str]) -> None:
    assert search_words(text) == words


def test_a_zero_width_space_is_within_a_word_and_between_words_of_scripts_without_blanks() -> None:
    assert search_words("light\u200bhouse \ufeffgeese") == ["lighthouse", "geese"]
    assert search_words("ไทย\u200bคำ") == [*search_words("ไทย"), *search_words("คำ")]


@given(MIXED)
def test_the_quick_way_for_latin_letters_finds_the_same_words(text: str) -> None:
    assert NOT_LATIN.search(text) or LATIN_RUNS.findall(text) == runs().findall(text)


def test_common_words_do_not_search_beside_telling_ones() -> None:
    assert query_words("How do I copy the data? Copy!") == ["copy", "data"]


def test_common_words_search_where_there_are_no_others() -> None:
    assert query_words("What is this?") == ["what", "is", "this"]


def test_a_long_question_is_searched_with_its_first_words() -> None:
    assert len(query_words(" ".join(f"word{n}" for n in range(500)))) == MAX_QUERY_WORDS


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How high is the tower?", ["tower"]),
        ("How hot is the oven?", ["oven"]),
        ("Wie hoch ist die Miete?", ["miete"]),
        ("Wie lange dauert die Fahrt?", ["dauert", "fahrt"]),
        ("Combien coûte le billet ?", ["coûte", "le", "billet"]),
        ("Сколько стоит билет?", ["стоит", "билет"]),
        ("The high tower", ["high", "tower"]),
        ("How long?", ["long"]),
    ],
)
def test_words_that_ask_how_much_are_not_searched_for(question: str, words: list[str]) -> None:
    assert query_words(question) == words
