"""Search: keywords and vectors together, on SQLite and on PostgreSQL."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rag_assistant.records import Scope
from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings.minilm import Familiarity, Vectors
from rag_assistant.retrieval.follow_up import SearchQuery, context_of
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.vector_search import ServingVectors
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.storage.database import Database
from tests.conftest import both_engines
from tests.testkit.shelf import KEY, Shelf


@pytest.fixture
def house(database: Database) -> Shelf:
    shelf = Shelf(database)
    shelf.embedders.configured()
    return shelf


def test_the_best_passage_comes_first(house: Shelf) -> None:
    house.shelve("the keeper feeds geese")
    house.shelve("the boat is green")
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
    house.shelve("geese hiss")
    house.shelve("geese eat")
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

    monkeypatch.setattr(house.embedders.configured(), "embed_questions", broken)
    assert len(house.found("geese")) == 1
    sources = number_sources(house.retriever.search("geese", 5))
    (quote,) = house.retriever.sources.quotes(SearchQuery("Who feeds geese?"), sources)
    assert quote.sentences[0].text.startswith("the keeper feeds geese.")


def test_chinese_is_found_by_words(house: Shelf) -> None:
    house.shelve("灯塔看守人喂养十七只鹅")
    house.shelve("船是绿色的")
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
    (query,) = vectors.of_questions(["word1 word2 word0"])
    cosines = sorted(vectors.compare(SearchQuery("word1 word2 word0"), texts), reverse=True)
    found = [cosine for _, cosine in vectors.search([query], 10)[0]]
    assert np.allclose(found, cosines[:10], atol=1e-6)


@both_engines
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
    house.documents.finish(newer.id, KEY)
    assert house.found("geese") == ["geese honk"]
    assert {passage.document_id for passage in house.retriever.search("geese", 5)} == {old.id}


def test_found_neighbours_come_as_one_passage_with_the_text_between(house: Shelf) -> None:
    house.shelve("the keeper feeds geese", "geese hiss at strangers", "lamps burn oil")
    house.shelve("boats float")
    (passage,) = house.retriever.search("geese", 2)
    assert passage.text == "the keeper feeds geese\ngeese hiss at strangers"
    assert (passage.start, passage.end) == (0, len(passage.text))


def test_the_same_text_in_many_documents_is_found_twice(house: Shelf) -> None:
    for filler in ("", " ", "  ", "!"):
        house.shelve(f"geese hiss at strangers{filler}")
    house.shelve("boats float")
    assert len([text for text in house.found("what do geese do") if "hiss" in text]) == 2


def test_a_question_about_nothing_in_the_library_has_no_support_and_keeps_its_hits(house: Shelf) -> None:
    house.shelve("the keeper feeds geese")
    house.shelve("lamps burn oil")
    house.shelve("parliament street is long")
    passages, support = house.retriever.find("what does the parliament decide about taxes and duties on salt", 5)
    assert (support, bool(passages)) == ("nothing_found", True)


def test_by_keywords_alone_a_question_needs_a_share_of_its_words(house: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    house.read(house.add(), "the keeper feeds geese. boats float. lamps burn.")
    monkeypatch.setattr(house.vectors, "now", lambda *_: None)
    question = "parliament taxes senate debate vote budget keeper"
    assert house.retriever.find(question, 5)[1] == "nothing_found"
    assert len(house.found(question)) == 1
    assert house.retriever.find("parliament keeper", 5)[1] == "found"


def test_passages_stay_within_a_budget_of_tokens_but_the_best_always_comes(house: Shelf) -> None:
    for number in range(4):
        house.shelve(f"geese number{number} " + f"hiss{number} " * 40)
    assert len(house.retriever.search("geese", 4)) == 4
    assert len(house.retriever.find("geese", 4, budget_tokens=200)[0]) == 2
    assert len(house.retriever.find("geese", 4, budget_tokens=1)[0]) == 1


def test_a_question_that_leans_finds_what_was_talked_about(house: Shelf) -> None:
    house.shelve("the lighthouse lamp burns oil from whales")
    house.shelve("a boat costs ninety crowns at the harbour")
    house.shelve("the price of a goose is four crowns")
    exchanges = [("What does the lighthouse lamp burn?", "Oil from whales.")]
    asked = house.retriever.follow_up("And why?", exchanges)
    assert asked.is_follow_up
    assert house.retriever.search(asked, 1)[0].text == "the lighthouse lamp burns oil from whales"


def test_a_follow_up_is_looked_for_in_one_query_of_the_index(house: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    house.shelve("the lighthouse lamp burns oil from whales")
    searched: list[object] = []
    search = ServingVectors.search

    def counted(self: ServingVectors, *asked: Any) -> list[list[Hit]]:
        searched.append(asked)
        return search(self, *asked)

    monkeypatch.setattr(ServingVectors, "search", counted)
    asked = house.retriever.follow_up("And why?", [("What does the lighthouse lamp burn?", "Oil from whales.")])
    assert asked.is_follow_up
    assert house.retriever.search(asked, 1)
    assert len(searched) == 1


def test_a_question_that_stands_alone_stays_as_it_is(house: Shelf) -> None:
    house.shelve("the price of a goose is four crowns")
    asked = house.retriever.follow_up("price of a goose in crowns", [("Does the lamp burn oil?", "Whale oil, yes.")])
    assert (asked.text, asked.context, asked.share) == ("price of a goose in crowns", "", 0.0)
    assert house.retriever.search(asked, 3) == house.retriever.search("price of a goose in crowns", 3)


def test_the_context_is_embedded_only_if_the_question_may_lean_on_it(
    house: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.shelve("the price of a goose is four crowns")
    embedder, embedded = house.embedders.configured(), list[str]()
    embed = embedder.embed_questions

    def noted(texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        return embed(texts)

    monkeypatch.setattr(embedder, "embed_questions", noted)
    before = [("Does the lamp burn oil?", "Whale oil, yes.")]
    house.retriever.follow_up("the price of a goose is four crowns", before)
    assert context_of(before) not in embedded
    house.retriever.follow_up("And the lamp?", before)
    assert context_of(before) in embedded
    house.retriever.follow_up("What is the capital of Mongolia?", before)
    assert "What is the capital of Mongolia?" not in embedded


def test_sentences_are_compared_with_a_follow_up_by_vectors_that_are_there(
    house: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.shelve("the price of a goose is four crowns")
    query = SearchQuery("And the lamp?", "Does the lamp burn oil?", 0.5)
    house.retriever.find(query, 1)

    def refused(_texts: Sequence[str]) -> Vectors:
        raise AssertionError

    monkeypatch.setattr(house.embedders.configured(), "embed_questions", refused)
    vectors = house.vectors.now()
    assert vectors is not None
    own, context = vectors.of_questions([query.text, query.context])
    both = own + np.float32(0.5) * context
    texts = ["the lamp burns oil", "geese hiss"]
    expected = [float(both @ row / np.linalg.norm(both)) for row in vectors.embedder.embed(texts)]
    assert vectors.compare(query, texts) == pytest.approx(expected, abs=1e-6)


def test_the_guide_is_found_where_it_answers_best_and_nowhere_else(house: Shelf) -> None:
    guide = "the window of a conversation has five turns"
    house.shelve(guide, name="2-history-window.md", origin="guide:2-history-window.md")
    house.shelve("the window of the lighthouse faces the sea")
    assert house.found("How many turns has the window of a conversation?")[0] == guide
    assert house.found("Where does the window of the lighthouse face?") == [
        "the window of the lighthouse faces the sea"
    ]


def test_the_guide_is_never_merely_the_nearest(house: Shelf) -> None:
    house.shelve(
        "the window of a conversation has five turns", name="2-history-window.md", origin="guide:2-history-window.md"
    )
    query = "Which conversation did the harbour master have with Iris in Perth about dredging?"
    assert house.retriever.find(query, 5) == ([], "nothing_found")
    house.shelve("the geese of the keeper eat barley")
    passages, support = house.retriever.find(query, 5)
    assert (support, {one.document for one in passages} & {"2-history-window.md"}) == ("nothing_found", set())


def test_a_question_in_a_language_in_which_no_document_is_is_known_by_its_words(
    house: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.shelve("the price of a goose is four crowns and that of an egg is one")
    german, english = "Wie viele Gänse hat der Wärter?", "What does the keeper of the lighthouse have?"
    assert house.retriever.foreign_language(german) == ""  # The model knows it.
    monkeypatch.setattr(house.vectors.now(), "familiarity", lambda _text: Familiarity(1.0, 0.0))
    assert [house.retriever.foreign_language(one) for one in (german, english, "Gans?")] == ["german", "", ""]


def test_while_the_model_is_broken_words_tell_whether_a_question_leans(
    house: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_texts: Sequence[str]) -> Vectors:
        raise EmbedderFailed("broken")

    monkeypatch.setattr(house.embedders.configured(), "embed_questions", broken)
    assert house.retriever.follow_up("And why?", [("What does the lamp burn?", "Oil.")]).is_follow_up


def test_of_a_language_that_the_model_does_not_know_keywords_alone_count(
    house: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.shelve("geese hiss and boats float and lamps burn")
    assert house.retriever.search("geese hiss", 1)[0].score < 1
    monkeypatch.setattr(house.vectors.now(), "familiarity", lambda _text: Familiarity(0.0, 0.0))
    assert house.retriever.search("geese hiss", 1)[0].score == 1


def test_a_newer_version_does_not_take_the_places_of_the_older_one(house: Shelf) -> None:
    old = house.shelve("geese hiss at the harbour")
    newer = house.add("newer", replaces=old.id)
    house.read(newer, *[f"geese hiss at the harbour number{number}" for number in range(150)])
    house.embed(newer)
    assert house.found("geese hiss at the harbour", 3) == ["geese hiss at the harbour"]


def test_a_model_that_fails_is_left_alone_for_a_while(house: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    house.shelve("geese hiss")
    asked: list[int] = []

    def broken(_texts: Sequence[str]) -> Vectors:
        asked.append(1)
        raise EmbedderFailed("broken")

    monkeypatch.setattr(house.embedders.configured(), "embed_questions", broken)
    for _ in range(3):
        assert house.found("geese") == ["geese hiss"]
    assert len(asked) == 1


def test_each_half_of_a_question_finds_its_own(house: Shelf) -> None:
    for text in ("the keeper feeds geese", "the keeper feeds geese corn", "the keeper feeds geese and ducks"):
        house.shelve(text)
    house.shelve("lamps burn oil")
    passages, support = house.retriever.find("Which geese does the keeper feed, and what do lamps burn?", 2)
    assert [one.text for one in passages] == ["the keeper feeds geese", "lamps burn oil"]
    assert support == "found"


@pytest.mark.parametrize(
    ("supports", "support"),
    [
        (("found", "near"), "found"),
        (("near", "near"), "near"),
        (("near", "nothing_found"), "near"),
        (("found", "nothing_found"), "near"),
        (("nothing_found", "nothing_found"), "nothing_found"),
    ],
)
def test_parts_of_a_question_are_near_only_where_one_found_nothing(
    house: Shelf, monkeypatch: pytest.MonkeyPatch, supports: tuple[str, str], support: str
) -> None:
    each = iter(supports)
    monkeypatch.setattr(house.retriever, "_support", lambda *_: next(each))
    assert house.retriever.find(SearchQuery("Where are the geese? When was the boat painted?"), 4)[1] == support


def test_where_one_half_finds_nothing_the_other_is_only_near(house: Shelf) -> None:
    house.shelve("the keeper feeds geese")
    question = "Which geese does the keeper feed, and what does parliament tax?"
    assert [house.retriever.find(half, 2)[1] for half in question.split(", and ")] == ["found", "nothing_found"]
    assert house.retriever.find(question, 2)[1] == "near"
