"""Keyword search in a library so large that not every row can be scored, and for words of a search language."""

import pytest

from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.storage import postgres_ranking
from rag_assistant.storage.database import Database
from tests.conftest import both_engines
from tests.testkit.shelf import Shelf

TEXTS = [f"common word{number % 7} rare{number}" for number in range(60)]


@pytest.fixture
def index(database: Database) -> KeywordSearch:
    shelf = Shelf(database)
    shelf.read(shelf.add(), *TEXTS)
    return shelf.keywords


def test_on_postgresql_rare_words_choose_and_all_words_rank(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_ranking, "MAX_CANDIDATES", 20)
    database = Database(postgres_database)
    shelf = Shelf(database)
    shelf.read(shelf.add(), *TEXTS)
    some = shelf.keywords.search(["common", "word3", "rare3", "rare12"], 100)
    assert some[0][0] == 4
    assert [score for _, score in some] == sorted((score for _, score in some), reverse=True)
    assert len(shelf.keywords.search(["common", "word3"], 5)) == 5
    database.close()


@both_engines
def test_nothing_breaks_on_words_of_the_search_language(index: KeywordSearch) -> None:
    assert len(index.search(["NEAR(", "a*", '"', "common", "+-:~^/\\"], 5)) == 5
    assert index.search(['c"m"n', "nowhere"], 5) == []
    assert index.unknown(["NEAR(", "common", '"']) == {"NEAR(", '"'}
