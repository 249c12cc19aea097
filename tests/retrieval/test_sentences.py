"""The sentences that the built-in model is given."""

from rag_assistant.retrieval.sentences import nearest_sentences, sentences_of
from testkit.embedders import WordHashEmbedder

embed = WordHashEmbedder().embed


def test_a_text_is_cut_at_the_ends_of_its_sentences() -> None:
    text = "# Title\n\nOne is 1.5. Two!\nThree? 四。五！"  # noqa: RUF001 - the point of it
    assert sentences_of(text) == ["One is 1.5.", "Two!", "Three?", "四。", "五！"]  # noqa: RUF001 - the point of it


def test_the_nearest_are_given_in_the_order_of_the_text() -> None:
    texts = ["Geese eat grass. Boats float on water.", "The keeper feeds geese. Lamps burn oil."]
    assert nearest_sentences("What do geese eat?", texts, embed, 2) == ["Geese eat grass.", "The keeper feeds geese."]


def test_few_sentences_are_all_given_and_nothing_is_embedded() -> None:
    embedder = WordHashEmbedder()
    assert nearest_sentences("Why?", ["One. Two."], embedder.embed, 5) == ["One.", "Two."]
    assert embedder.embedded == []
