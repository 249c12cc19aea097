"""A word is found however it is spelled: transliterated, irregular, in a compound or an identifier, or wrong."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assistant.records import Passage
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.support import support_of
from rag_assistant.retrieval.tokenize import stem
from rag_assistant.storage.database import Database, sqlite_url
from tests.testkit.shelf import Shelf

GERMAN = "Die Ärzte und Frau Müller von der Prüfstelle haben im Jahresurlaub alte Häuser und Früchte gezeichnet."
ENGLISH = "Wolves and mice live here, and maxRetryCount is 7; the pass\u200bword of the warehouse is AB1234Y."


@pytest.fixture
def shelf(migrated: Path, tmp_path: Path) -> Iterator[Shelf]:
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    database = Database(sqlite_url(tmp_path))
    yield Shelf(database)
    database.close()


def support(question: str, text: str) -> str:
    passage = Passage(1, 1, "notes.txt", 0, len(text), text, None, 0.5)
    return support_of(SearchQuery(question), [passage], 0.2, 10, lambda _, texts: [0.2] * len(texts))


@pytest.mark.parametrize(
    "word", ["Mueller", "Müller", "Pruefstelle", "Haus", "Haeuser", "Arzt", "Aerzte", "Frucht", "Urlaub"]
)
def test_a_german_word_is_in_a_passage_in_any_spelling_form_and_compound(word: str) -> None:
    assert support(word, GERMAN) == "found"
    assert support("Mueller", GERMAN.replace("Müller", "Mueller")) == "found"


@pytest.mark.parametrize("words", ["wolf", "mouse", "retry count", "password", "AB1234Y"])
def test_an_english_word_is_in_a_passage_in_any_form_and_identifier(words: str) -> None:
    assert support(words, ENGLISH) == "found"


@pytest.mark.parametrize("word", ["Zahn", "Maus", "ware", "house", "fox"])
def test_a_word_that_is_in_no_form_in_a_passage_is_not_found(word: str) -> None:
    assert support(word, GERMAN if word in ("Zahn", "Maus") else ENGLISH) == "nothing_found"


def test_an_id_that_only_something_like_it_is_in_a_passage_is_at_most_near() -> None:
    text = "The valve AB1234Y is replaced every two years."
    assert support("When is the valve AB1234Y replaced?", text) == "found"
    assert support("When is the valve AB1234X replaced?", text) == "near"
    passage = Passage(1, 1, "notes.txt", 0, len(text), text, None, 0.5)
    assert support_of(SearchQuery("valve AB1234X"), [passage], None, 10, None) == "near"


def test_figures_and_ids_have_no_endings() -> None:
    assert stem("1234567") != stem("1234599")
    assert stem("häuser") == stem("haus") != stem("hausen")


@pytest.mark.parametrize("question", ["wolf", "What does a mouse eat?", "The workshp opens", "Brahmapturas", "AB1234X"])
def test_a_word_that_no_passage_has_is_searched_for_in_its_other_forms(shelf: Shelf, question: str) -> None:
    shelf.shelve(*(f"Boat {n} is in the harbour." for n in range(20)))
    document = shelf.shelve("Wolves and mice, the workshop and the Brahmaputra of AB1234Y.")
    assert shelf.retriever.search(question, 1)[0].document_id == document.id


def test_an_irregular_form_is_not_searched_for_beside_a_word_that_is_there(shelf: Shelf) -> None:
    shelf.shelve("A wolf sleeps.", "Wolves, wolves, wolves.", *(f"Boat {n}." for n in range(20)))
    ranked, _ = shelf.retriever.ranked(SearchQuery("wolf"))
    assert ranked[0][0] == 1


def test_a_word_is_found_in_a_compound_where_the_library_has_a_language_with_compounds(shelf: Shelf) -> None:
    shelf.shelve("The warehouse is large.", "The boat is small.")
    state = shelf.keywords.store.state()
    assert shelf.keywords.search(["warehous"], 5, None, state)
    assert shelf.keywords.search(["rehous"], 5, None, state) == []
    shelf.shelve("Der Jahresurlaub ist im Sommer und nicht im Winter, wenn die Schule zu ist.", "Der Hafen ist klein.")
    assert [chunk_id for chunk_id, _ in shelf.keywords.search(["urlaub"], 5)] == [3]
    assert shelf.keywords.unknown(["urlaub"]) == {"urlaub"}
