"""Keyword search in a library so large that not every row can be scored."""

from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from rag_assistant.records import Scope
from rag_assistant.storage import full_text, postgres_ranking
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.keywords import KeywordIndex
from tests.conftest import both_engines
from tests.testkit.shelf import Shelf

TEXTS = [f"common word{number % 7} rare{number}" for number in range(60)]


@pytest.fixture
def index(database: Database) -> KeywordIndex:
    shelf = Shelf(database)
    shelf.read(shelf.add(), *TEXTS)
    return shelf.keywords


def test_rare_words_choose_and_all_words_rank(index: KeywordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["common", "word3", "rare3", "rare12"]
    everything = dict(index.search(words, 100))
    monkeypatch.setattr(full_text, "MAX_SCORED", 20)
    monkeypatch.setattr(postgres_ranking, "MAX_CANDIDATES", 20)
    some = index.search(words, 100)
    assert some[0][0] == 4
    assert [score for _, score in some] == sorted((score for _, score in some), reverse=True)
    if index._database.is_sqlite:  # PostgreSQL counts a common word only so far, which moves all scores a little.
        assert all(score == pytest.approx(everything[chunk_id]) for chunk_id, score in some)


@both_engines
def test_at_least_the_rarest_word_is_searched(index: KeywordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_text, "MAX_SCORED", 1)
    assert len(index.search(["common", "word3"], 5)) == 5
    assert index.search(['com"mon', "nowhere"], 5) == []


@both_engines
def test_nothing_breaks_on_words_of_the_search_language(index: KeywordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_text, "MAX_SCORED", 1)
    try:
        index.search(["NEAR(", "a*", '"', "common"], 5)
    except SQLAlchemyError as error:  # pragma: no cover - says which word it was
        pytest.fail(str(error))


def test_in_a_scope_the_words_are_looked_up_once_and_not_for_each_row(index: KeywordIndex) -> None:
    if not index._database.is_sqlite:
        pytest.skip("only FTS5 would look for each row anew")
    statements: list[tuple[str, Any]] = []
    event.listen(
        index._database._reader,
        "before_cursor_execute",
        lambda _c, _cursor, statement, parameters, *_: statements.append((statement, parameters)),
    )
    assert len(index.search(["common", "word3"], 5, Scope(document_ids=(1,)))) == 5
    ((statement, parameters),) = [one for one in statements if "MATCH" in one[0]]
    with index._database.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    (lookup,) = [row[-1] for row in plan if "VIRTUAL TABLE" in row[-1]]
    assert "=" not in lookup, "an equals sign in FTS5's own plan stands for one row's id"
