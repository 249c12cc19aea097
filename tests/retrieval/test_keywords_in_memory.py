"""Keywords in memory find what SQLite finds, whatever happens to the library, and never hold a question up."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from rag_assistant.records import EVERYTHING, Document, Scope
from rag_assistant.records.errors import StorageFailed
from rag_assistant.retrieval.indexes import keywords_in_memory
from rag_assistant.retrieval.indexes.keywords_in_memory import KeywordsInMemory, apart
from rag_assistant.retrieval.search import Retriever
from rag_assistant.retrieval.terms import query_terms
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents import keywords
from rag_assistant.storage.tables import chunks
from tests.testkit.shelf import Shelf

ALL = 1000
WORDS = ["goose", "eau", "l", "cafe", "café", "naïve", "日本", "हिन्दी", "nowhere", "lamp", "oil", "keeper", "STRASSE"]


@pytest.fixture
def shelf(migrated: Path, tmp_path: Path) -> Iterator[Shelf]:
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    database = Database(sqlite_url(tmp_path))
    yield Shelf(database)
    database.close()


@pytest.fixture
def memory(shelf: Shelf) -> Iterator[KeywordsInMemory]:
    memory = KeywordsInMemory(shelf.keywords, from_chunks=1)
    yield memory
    memory.close()


def terms_of(*words: str) -> list[str]:
    return query_terms(" ".join(words), ["english"])


def found(memory: KeywordsInMemory, shelf: Shelf, word: str, part: Scope = EVERYTHING) -> list[int]:
    """Return what is found in memory as soon as that is in step, the best first."""
    end = time.monotonic() + 60
    while (hits := memory.best(terms_of(word), ALL, shelf.keywords.state(), shelf.chunks.within(part))) is None:
        assert time.monotonic() < end, "it never came in step"
        time.sleep(0.005)
    assert hits == sorted(hits, key=lambda hit: -hit[1])
    return [chunk_id for chunk_id, _ in hits]


def assert_as_in_sql(memory: KeywordsInMemory, shelf: Shelf, part: Scope = EVERYTHING) -> None:
    for word in WORDS:
        in_sql = [chunk_id for chunk_id, _ in shelf.keywords.search(terms_of(word), ALL, part)]
        assert sorted(found(memory, shelf, word, part)) == sorted(in_sql), word


def index_anew(shelf: Shelf, document: Document, words: str) -> None:
    """Give the chunks of a document other words, as a newer version does."""
    with shelf.database.write() as connection:
        own = select(chunks.c.id).where(chunks.c.document_id == document.id)
        ids = list(connection.execute(own).scalars())
        keywords.drop_words(connection, own)
        keywords.index_words(connection, [(chunk_id, words) for chunk_id in ids])


def test_it_finds_what_sql_finds_after_documents_came_changed_and_went(shelf: Shelf, memory: KeywordsInMemory) -> None:
    first, second, third = (shelf.add(name) for name in ("one", "two", "three"))
    shelf.read(first, "The goose and l'eau", "café for a goose")
    assert_as_in_sql(memory, shelf)
    shelf.read(second, "l\u2019eau naïve", "日本 हिन्दी lamp")
    shelf.read(third, "a lamp burns oil", "the keeper of the lamp")
    assert_as_in_sql(memory, shelf)
    shelf.documents.delete(second.id)
    assert_as_in_sql(memory, shelf)
    index_anew(shelf, third, "cafe goos")
    assert_as_in_sql(memory, shelf)
    assert found(memory, shelf, "lamp") == []
    assert len(found(memory, shelf, "goose")) == 4


def test_after_more_changes_than_are_noted_it_reads_all_words_again(
    shelf: Shelf, memory: KeywordsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keywords, "MAX_CHANGES_KEPT", 1)
    document = shelf.add("one")
    shelf.read(document, "a goose")
    assert_as_in_sql(memory, shelf)
    for words in ("lamp", "oil", "keeper"):
        index_anew(shelf, document, words)
    assert shelf.keywords.changes_after(1) is None
    assert_as_in_sql(memory, shelf)
    assert len(found(memory, shelf, "keeper")) == 1


def test_of_changes_that_overlap_each_chunk_is_read_once(shelf: Shelf, memory: KeywordsInMemory) -> None:
    assert apart([(5, 9), (1, 2), (7, 12), (1, 1), (20, 20)]) == [(1, 2), (5, 12), (20, 20)]
    document = shelf.add()
    shelf.read(document, "goose", "lamp", "oil")
    assert_as_in_sql(memory, shelf)
    for words in ("goos", "lamp goos", "keeper goos"):
        index_anew(shelf, document, words)
    hits = found(memory, shelf, "goose")
    assert (sorted(hits), len(set(hits))) == ([1, 2, 3], 3)


@pytest.mark.parametrize("few", [0, 2000])
def test_in_a_scope_it_finds_all_that_is_there(
    shelf: Shelf, memory: KeywordsInMemory, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(keywords_in_memory, "MAX_FEW", few)
    ones = [shelf.add(str(n)) for n in range(3)]
    shelf.read(ones[0], *(f"goose {n}" for n in range(300)))
    shelf.read(ones[1], "a long text with one goose in it, far behind the others", "oil")
    shelf.read(ones[2], "goose oil")
    for part in (Scope((ones[1].id,)), Scope((ones[1].id, ones[2].id)), Scope((99,))):
        assert_as_in_sql(memory, shelf, part)
    within = shelf.chunks.within(Scope((ones[1].id,)))
    assert [chunk_id for chunk_id, _ in memory.best(terms_of("goose"), 1, shelf.keywords.state(), within) or ()] == [
        301
    ]


def test_what_holds_a_rare_word_or_more_of_the_words_comes_first(shelf: Shelf, memory: KeywordsInMemory) -> None:
    shelf.read(shelf.add(), *(f"common word{n % 7} rare{n}" for n in range(60)))
    found(memory, shelf, "common")
    hits = memory.best(terms_of("common", "word3", "rare3", "rare12"), ALL, shelf.keywords.state())
    assert hits is not None
    assert [chunk_id for chunk_id, _ in hits][:2] == [4, 13]
    assert len(hits) == 60


def test_while_it_is_behind_sqlite_answers(shelf: Shelf, memory: KeywordsInMemory) -> None:
    retriever = Retriever(shelf.chunks, shelf.keywords, shelf.vectors, in_memory=memory)
    shelf.shelve("The goose hisses", "The lamp burns oil")
    assert [one.text for one in retriever.search("goose", 1)] == ["The goose hisses"]
    found(memory, shelf, "goose")
    shelf.shelve("A swan swims")
    assert memory.best(["swan"], 1, shelf.keywords.state()) is None
    assert [one.text for one in retriever.search("swan", 1)] == ["A swan swims"]
    found(memory, shelf, "swan")
    assert [one.text for one in retriever.search("swan", 1)] == ["A swan swims"]


def test_a_database_that_fails_is_asked_again(
    shelf: Shelf, memory: KeywordsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.read(shelf.add(), "a goose")
    monkeypatch.setattr(keywords_in_memory, "RETRY_INTERVAL_SECONDS", 0.01)
    whole = shelf.keywords.words_between
    failed: list[tuple[int, ...]] = []

    def fails_once(*between: int) -> list[tuple[int, str]]:
        if not failed:
            failed.append(between)
            raise StorageFailed("away")
        return whole(*between)

    monkeypatch.setattr(shelf.keywords, "words_between", fails_once)
    assert found(memory, shelf, "goose") == [1]
    assert failed


def test_a_small_library_is_left_to_sqlite(shelf: Shelf) -> None:
    memory = KeywordsInMemory(shelf.keywords)
    shelf.read(shelf.add(), "a goose")
    memory.warm_up()
    assert memory.best(["goose"], 1, shelf.keywords.state()) is None
    assert memory._thread is None
    memory.close()


def test_postgresql_searches_words_itself(postgres_database: str) -> None:
    database = Database(postgres_database)
    shelf = Shelf(database)
    shelf.read(shelf.add(), "a goose")
    memory = KeywordsInMemory(shelf.keywords, from_chunks=1)
    assert memory.best(["goose"], 1, shelf.keywords.state()) is None
    assert memory._thread is None
    database.close()
