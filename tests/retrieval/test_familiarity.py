"""How well an embedding model knows a text."""

from pathlib import Path

import pytest

from rag_assistant.retrieval.embeddings.minilm import FAMILIAR, Familiarity, MiniLM, familiarity


def test_words_that_are_known_whole_count_as_words_and_as_pieces() -> None:
    assert familiarity("a lamp", [(0, 1, 0), (2, 6, 1)]) == Familiarity(pieces=4 / 5, words=4 / 5)


def test_pieces_of_a_word_count_as_pieces_only() -> None:
    assert familiarity("Lampe", [(0, 4, 0), (4, 5, 0)]) == Familiarity(pieces=4 / 5, words=0)


def test_single_letters_and_the_unknown_count_for_nothing() -> None:
    assert familiarity("灯塔", [(0, 1, 0), (1, 2, 1)]) == Familiarity(0, 0)
    assert familiarity("灯塔", []) == Familiarity(0, 0)


@pytest.mark.parametrize("text", ["", "2019?", " - "])
def test_a_text_without_letters_is_well_known(text: str) -> None:
    assert familiarity(text, []) == FAMILIAR


@pytest.mark.model
def test_the_built_in_model_knows_english_well_german_by_pieces_and_chinese_not_at_all(embedders: Path) -> None:
    model = MiniLM(embedders)
    english = model.familiarity("How many points did the Panthers defense surrender?")
    german = model.familiarity("Wie viele Punkte gab die Verteidigung der Panthers ab?")
    assert english.words > 0.8
    assert german.pieces > 0.8 > 0.5 > german.words
    for foreign in ("黑豹队的防守丢了多少分?", "Сколько очков уступила защита Пантерс?", "แนวรับเสียแต้มไปกี่แต้ม"):
        assert model.familiarity(foreign).pieces < 0.2
    assert model.familiarity("word " * 5000).words == 1.0
