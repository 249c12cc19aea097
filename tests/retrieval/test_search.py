"""Search: keywords and vectors together, on SQLite and on PostgreSQL."""

from collections.abc import Sequence

import numpy as np
import pytest

from rag_assistant.errors import EmbedderFailed
from rag_assistant.records import Scope
from rag_assistant.retrieval.embedding import Vectors
from rag_assistant.storage.database import Database
from tests.shelf import Shelf


@pytest.fixture
def house(database: Database) -> Shelf:
    shelf = Shelf(database)
    shelf.embedders.wanted()
    return shelf


def test_the_best_passage_comes_first(house: Shelf) -> None:
    house.shelve("the keeper feeds geese", "the boat is green")
    house.shelve("lamps burn oil")
    assert house.found("what does the keeper feed the geese")[0] == "the keeper feeds geese"


def test_only_the_chosen_documents_are_searched(house: Shelf) -> None:
    house.shelve("the keeper feeds geese")
    other = house.shelve("geese hiss")
    assert house.found("geese", scope=Scope((other.id,))) == ["geese hiss"]


def test_no_passages_are_asked_for(house: Shelf) -> None:
    house.shelve("the keeper feeds geese")
    assert house.found("geese", limit=0) == []


def test_more_passages_than_there_are(house: Shelf) -> None:
    house.shelve("geese hiss", "geese eat")
    assert len(house.found("geese", limit=50)) == 2


def test_words_of_the_search_language_are_only_words(house: Shelf) -> None:
    house.shelve("geese hiss")
    for query in ('geese" OR "boats', "NEAR(geese", "geese*", "col:geese", "geese & ! | :*", "'); DROP TABLE x"):
        house.found(query)
    assert house.found('"geese"') == ["geese hiss"]


def test_keywords_find_what_is_not_embedded_yet(house: Shelf) -> None:
    house.shelve("the boat is green")
    house.read(house.add(), "geese hiss")
    assert "geese hiss" in house.found("geese")


def test_keywords_answer_while_the_embedder_is_broken(house: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    house.shelve("the keeper feeds geese. boats float. lamps burn.")

    def broken(_texts: Sequence[str]) -> Vectors:
        raise EmbedderFailed("broken")

    monkeypatch.setattr(house.embedders.wanted().embedder, "embed", broken)
    assert len(house.found("geese")) == 1
    assert house.retriever.sentences("geese?", ["One. Two. Three."], 2) == ["One.", "Two."]


def test_chinese_is_found_by_words(house: Shelf) -> None:
    house.shelve("灯塔看守人喂养十七只鹅", "船是绿色的")
    assert house.found("看守人喂养什么")[0] == "灯塔看守人喂养十七只鹅"


def test_the_exact_index_follows_additions_and_deletions(house: Shelf) -> None:
    first = house.shelve("geese hiss")
    assert len(house.nearest("geese")) == 1
    house.shelve("geese eat")
    assert len(house.nearest("geese")) == 2
    house.documents.delete(first.id)
    assert len(house.nearest("geese")) == 1


def test_the_exact_index_sees_a_smaller_chunk_that_was_embedded_later(house: Shelf) -> None:
    early = house.add()
    house.read(early, "geese hiss")
    house.shelve("boats float")
    assert len(house.nearest("geese")) == 1
    house.embed(early)
    assert len(house.nearest("geese")) == 2


def test_the_exact_index_agrees_with_every_cosine(house: Shelf) -> None:
    texts = [f"word{n % 7} word{n % 5} word{n % 3} word{n}" for n in range(60)]
    house.shelve(*texts)
    vectors = house.vectors.now()
    assert vectors is not None
    query = vectors.embed(["word1 word2 word0"])[0]
    cosines = sorted((float(value) for value in vectors.embed(texts) @ query), reverse=True)
    found = [cosine for _, cosine in vectors.search(query, 10)]
    assert np.allclose(found, cosines[:10], atol=1e-6)


def test_only_documents_with_a_chosen_tag_are_searched(house: Shelf) -> None:
    house.shelve("geese fly", tags=("birds", "air"))
    house.shelve("geese swim", tags=("birds",))
    house.shelve("geese hiss")
    assert set(house.found("geese", scope=Scope(tags=("birds",)))) == {"geese fly", "geese swim"}
    assert house.found("geese", scope=Scope(tags=("air", "none"))) == ["geese fly"]
    assert house.found("geese", scope=Scope((3,), ("birds",))) == []


def test_a_newer_version_is_not_found_before_it_takes_its_place(house: Shelf) -> None:
    old = house.shelve("geese hiss")
    newer = house.add("newer", replaces=old.id)
    house.read(newer, "geese honk")
    house.embed(newer)
    assert house.found("geese") == ["geese hiss"]
    house.documents.finish(newer.id, "word-hash")
    assert house.found("geese") == ["geese honk"]
    assert {passage.document_id for passage in house.retriever.search("geese", 5)} == {old.id}
