"""Keyword search finds what SQL holds, whatever happens to the library, and never holds a question up."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from rag_assistant.records import EVERYTHING, Document, Scope
from rag_assistant.records.errors import StorageFailed
from rag_assistant.retrieval.indexes import keyword_search
from rag_assistant.retrieval.search import MEANING_ALONE
from rag_assistant.retrieval.terms import PART_NUMBER, query_terms
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.chunks import KeywordIndex, drop_words, index_words
from rag_assistant.storage.tables import chunks
from tests.testkit.shelf import Shelf

ALL = 1000
TOKENIZER = "unicode61 remove_diacritics 2 categories ''L* N* Co M*''"
WORDS = ["goose", "eau", "l", "cafe", "café", "naïve", "日本", "हिन्दी", "nowhere", "lamp", "oil", "keeper", "STRASSE"]


@pytest.fixture
def shelf(migrated: Path, tmp_path: Path) -> Iterator[Shelf]:
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    database = Database(sqlite_url(tmp_path))
    yield Shelf(database)
    database.close()


def terms_of(*words: str) -> list[str]:
    return query_terms(" ".join(words), ["english"])


def found(shelf: Shelf, word: str, part: Scope = EVERYTHING) -> list[int]:
    """Return what is found, the best first."""
    hits = shelf.keywords.search(terms_of(word), ALL, shelf.chunks.within(part))
    assert hits == sorted(hits, key=lambda hit: -hit[1])
    return [chunk_id for chunk_id, _ in hits]


def in_sql(shelf: Shelf, word: str, part: Scope) -> list[int]:
    """Return what SQLite's own full text finds among the words that are kept."""
    fts = sqlite3.connect(":memory:")
    fts.execute(f"CREATE VIRTUAL TABLE held USING fts5(words, tokenize = '{TOKENIZER}')")
    fts.executemany(
        "INSERT INTO held (rowid, words) VALUES (?, ?)", KeywordIndex(shelf.database).words_between(0, ALL, ALL)
    )
    any_word = " OR ".join(f'"{term}"' for term in terms_of(word))
    ids = [row for (row,) in fts.execute("SELECT rowid FROM held WHERE held MATCH ?", (any_word,))]
    within = shelf.chunks.within(part)
    return ids if within is None else sorted({*ids} & {*within.ids.all().tolist()})


def assert_as_in_sql(shelf: Shelf, part: Scope = EVERYTHING) -> None:
    for word in WORDS:
        assert sorted(found(shelf, word, part)) == in_sql(shelf, word, part), word


def index_anew(shelf: Shelf, document: Document, words: str) -> None:
    """Give the chunks of a document other words, as a newer version does."""
    with shelf.database.write() as connection:
        own = select(chunks.c.id).where(chunks.c.document_id == document.id)
        ids = list(connection.execute(own).scalars())
        drop_words(connection, own)
        index_words(connection, [(chunk_id, words) for chunk_id in ids])


def test_it_finds_what_sql_finds_after_documents_came_changed_and_went(shelf: Shelf) -> None:
    first, second, third = (shelf.add(name) for name in ("one", "two", "three"))
    shelf.read(first, "The goose and l'eau", "café for a goose")
    assert_as_in_sql(shelf)
    shelf.read(second, "l\u2019eau naïve", "日本 हिन्दी lamp")
    shelf.read(third, "a lamp burns oil", "the keeper of the lamp")
    assert_as_in_sql(shelf)
    shelf.documents.delete(second.id)
    assert_as_in_sql(shelf)
    index_anew(shelf, third, "cafe goos")
    assert_as_in_sql(shelf)
    assert found(shelf, "lamp") == []
    assert len(found(shelf, "goose")) == 4


def test_after_more_changes_than_are_noted_it_reads_all_words_again(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.storage.documents.chunks.MAX_CHANGES_KEPT", 1)
    document = shelf.add("one")
    shelf.read(document, "a goose")
    assert_as_in_sql(shelf)
    for words in ("lamp", "oil", "keeper"):
        index_anew(shelf, document, words)
    assert KeywordIndex(shelf.database).changes_after(1) is None
    assert_as_in_sql(shelf)
    assert len(found(shelf, "keeper")) == 1


def test_of_changes_that_overlap_each_chunk_is_found_once(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.read(document, "goose", "lamp", "oil")
    assert_as_in_sql(shelf)
    for words in ("goos", "lamp goos", "keeper goos"):
        index_anew(shelf, document, words)
    hits = found(shelf, "goose")
    assert (sorted(hits), len(set(hits))) == ([1, 2, 3], 3)


@pytest.mark.long
@pytest.mark.parametrize("few", [0, 2000])
def test_in_a_scope_it_finds_all_that_is_there(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(keyword_search, "MAX_FEW", few)
    ones = [shelf.add(str(n)) for n in range(3)]
    shelf.read(ones[0], *(f"goose {n}" for n in range(300)))
    shelf.read(ones[1], "a long text with one goose in it, far behind the others", "oil")
    shelf.read(ones[2], "goose oil")
    for part in (Scope((ones[1].id,)), Scope((ones[1].id, ones[2].id)), Scope((99,))):
        assert_as_in_sql(shelf, part)
    within = shelf.chunks.within(Scope((ones[1].id,)))
    assert [chunk_id for chunk_id, _ in shelf.keywords.search(terms_of("goose"), 1, within)] == [301]
    assert shelf.keywords.unknown(["goos", "oil", "lamp"], within) == {"lamp"}


def test_what_holds_a_rare_word_or_more_of_the_words_comes_first(shelf: Shelf) -> None:
    shelf.read(shelf.add(), *(f"common word{n % 7} rare{n}" for n in range(60)))
    hits = shelf.keywords.search(terms_of("common", "word3", "rare3", "rare12"), ALL)
    assert [chunk_id for chunk_id, _ in hits][:2] == [4, 13]
    assert len(hits) == 60


def test_a_name_that_is_written_otherwise_is_found_and_counts_less_than_one_that_is_not(shelf: Shelf) -> None:
    shelf.shelve("Anna Lindqvist keeps geese.", "The harbour is closed in winter.", *(f"Boat {n}." for n in range(9)))
    assert found(shelf, "Lindquist") == found(shelf, "Lindqvist") != []
    assert found(shelf, "Lindquist harbour")[0] == found(shelf, "harbour")[0]
    assert found(shelf, "Lundquist") == []
    assert shelf.keywords.unknown(["lindquist", "lindqvist"]) == {"lindquist"}


@pytest.mark.parametrize(("kept", "asked"), [("AB-1234/X", "AB1234X"), ("AB1234X", "AB-1234/X")])
def test_a_part_number_is_found_however_it_is_written(shelf: Shelf, kept: str, asked: str) -> None:
    shelf.shelve(f"The strap is number {kept} of the list.", "The lid is number CD-5678/Y.")
    assert found(shelf, asked)[0] == found(shelf, "strap")[0]


def test_years_and_ordinals_are_no_part_numbers() -> None:
    for text in ("in the 1970s", "die 1970er-Jahre", "COVID-19", "2019-nCoV", "2025-05-06"):
        assert not PART_NUMBER.search(text.lower()), text


def test_an_empty_library_holds_no_word(shelf: Shelf) -> None:
    assert (shelf.keywords.search(["goos"], 5), shelf.keywords.unknown(["goos"])) == ([], {"goos"})
    document = shelf.shelve("A goose")
    assert (found(shelf, "goose"), shelf.keywords.unknown(["goos", "swan"])) == ([1], {"swan"})
    shelf.documents.delete(document.id)
    assert (found(shelf, "goose"), shelf.keywords.unknown(["goos"])) == ([], {"goos"})


def test_of_a_large_library_vectors_alone_are_searched_until_its_words_are_read(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_search, "READ_BY_SEARCHES", 1)
    shelf.shelve("The goose hisses", "The lamp burns oil")
    going_on = held_up(monkeypatch)
    assert shelf.keywords.is_loading(), "from the beginning, before the reading starts"
    assert (found(shelf, "goose"), shelf.keywords.is_loading(), shelf.keywords.unknown(["swan"])) == ([], True, set())
    assert shelf.found("goose", 1) == ["The goose hisses"]
    library = shelf.retriever.library(EVERYTHING)
    assert shelf.retriever.notes(library) == (MEANING_ALONE,)
    going_on.set()
    shelf.keywords.load()
    assert shelf.retriever.notes(library) == ()
    assert (found(shelf, "goose"), shelf.keywords.is_loading()) == ([1], False)
    shelf.shelve("A swan swims")
    assert found(shelf, "swan") == [3], "of a few changes each search reads itself"
    going_on.clear()
    shelf.shelve("A goose", "A swan")
    assert (found(shelf, "swan"), shelf.keywords.is_loading()) == ([3], False), "what was read goes on answering"
    going_on.set()
    shelf.keywords.load()
    assert sorted(found(shelf, "swan")) == [3, 5]
    shelf.keywords.close()


def held_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what lets a reading of the words go on."""
    going_on, whole = threading.Event(), KeywordIndex.words_between

    def waits(self: KeywordIndex, *between: int) -> list[tuple[int, str]]:
        if threading.current_thread().name == "keywords":
            assert going_on.wait(60)
        return whole(self, *between)

    monkeypatch.setattr(KeywordIndex, "words_between", waits)
    return going_on


def test_words_that_could_not_be_read_are_read_again(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keyword_search, "READ_BY_SEARCHES", 0)
    shelf.read(shelf.add(), "a goose")

    def fails(*_: object) -> list[tuple[int, str]]:
        raise StorageFailed("away")

    with monkeypatch.context() as broken:
        broken.setattr(KeywordIndex, "words_between", fails)
        shelf.keywords.load()
    assert "away" in caplog.text
    shelf.keywords.load()
    assert found(shelf, "goose") == [1]


@pytest.mark.long
def test_postgresql_searches_words_itself(postgres_database: str) -> None:
    database = Database(postgres_database)
    shelf = Shelf(database)
    shelf.read(shelf.add(), "a goose")
    shelf.keywords.load()
    assert (found(shelf, "goose"), shelf.keywords.unknown(["goos", "swan"])) == ([1], {"swan"})
    assert shelf.keywords._held is None
    database.close()
