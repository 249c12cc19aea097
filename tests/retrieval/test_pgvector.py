"""pgvector for real: what is kept is found, what is deleted is not, while indexes come and go."""

import threading
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from sqlalchemy import text

from rag_assistant.records import Scope
from rag_assistant.records.errors import IndexUnavailable, StorageFailed
from rag_assistant.retrieval.indexes.pgvector import PgVectorIndex
from rag_assistant.retrieval.indexes.vector_search import VectorSearch
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.scope import ChunksInScope
from rag_assistant.storage.documents.vector_table import (
    INDEXES,
    NOT_ALLOWED,
    NOT_INSTALLED,
    TOO_OLD,
    VectorIndexes,
    VectorTable,
)
from tests.testkit.shelf import Shelf

TEXTS = [f"word{n % 7} word{n % 5} word{n % 3} word{n}" for n in range(60)]


@pytest.fixture
def database(postgres_database: str) -> Iterator[Database]:
    opened = Database(postgres_database)
    yield opened
    opened.close()


class PgShelf(Shelf):
    """A library that pgvector searches, however small it is."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.table, self.indexes = VectorTable(database), VectorIndexes(database)
        assert self.table.prepare() is None
        self.opened: list[PgVectorIndex] = []
        self.vectors = VectorSearch(self.embeddings, self.embedders, self._open)
        self.retriever = type(self.retriever)(self.chunks, self.keywords, self.vectors)
        self.embedders.configured()

    def _open(self, known: object) -> PgVectorIndex:
        index = PgVectorIndex(self.embeddings, self.table, self.indexes, known, indexed_from=1)  # type: ignore[arg-type]
        index.start = lambda: None  # type: ignore[method-assign] # Each test says when.
        self.opened.append(index)
        return index

    @property
    def index(self) -> PgVectorIndex:
        """The index of the vectors that are searched now."""
        assert self.vectors.now() is not None
        return self.opened[-1]

    def index_names(self) -> list[tuple[str, bool]]:
        """Return the indexes that there are, and whether each is valid."""
        with self.database.read() as connection:
            return [(row.relname, row.indisvalid) for row in connection.execute(INDEXES)]

    def within(self, *document_ids: int) -> ChunksInScope:
        """Return the chunks of some documents."""
        return ChunksInScope(self.database, Scope(document_ids))


@pytest.fixture
def shelf(database: Database) -> PgShelf:
    return PgShelf(database)


def test_it_agrees_with_the_exact_index_before_and_after_its_index_is_built(shelf: PgShelf, database: Database) -> None:
    plain = Shelf(database)
    plain.embedders.configured()
    shelf.shelve(*TEXTS)
    wanted = plain.vectors.now()
    assert wanted is not None
    (query,) = wanted.of_questions(["word1 word2 word0"])
    exactly = [cosine for _, cosine in wanted.search([query], 20)[0]]
    for _ in range(2):
        (found,) = shelf.index.search([query], 20, (60, 0))
        assert np.allclose([cosine for _, cosine in found], exactly, atol=2e-3)
        shelf.index.come_in_step()
    assert [valid for _, valid in shelf.index_names()] == [True]
    assert shelf.index.state == "ready"


def test_no_vector_is_read_into_memory(shelf: PgShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.shelve(*TEXTS)
    monkeypatch.setattr(shelf.embeddings, "vectors_after", None)
    shelf.vectors.warm_up()
    assert len(shelf.nearest("word1")) == 5


def test_a_deleted_document_is_not_found_at_once_and_a_new_one_is(shelf: PgShelf) -> None:
    shelf.shelve(*TEXTS)
    shelf.index.come_in_step()
    geese = shelf.shelve("geese hiss")
    assert shelf.found("geese")[0] == "geese hiss"
    assert shelf.nearest("geese hiss")[0] == 61
    shelf.documents.delete(geese.id)
    assert 61 not in shelf.nearest("geese hiss")
    assert "geese hiss" not in shelf.found("geese")


@pytest.mark.long
def test_a_scope_gives_as_many_as_it_has_with_the_index_and_without(
    shelf: PgShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.shelve(*TEXTS)
    rare = shelf.shelve("geese hiss", "geese eat", "boats float")
    shelf.index.come_in_step()
    for most in (0, 5_000):  # Through the index, and without it.
        monkeypatch.setattr("rag_assistant.storage.documents.vector_table.MAX_EXACT_CHUNKS", most)
        assert set(shelf.nearest("word1 word2", shelf.within(rare.id))) == {61, 62, 63}
        assert len(shelf.nearest("word1 word2", shelf.within(1))) == 5


def test_vectors_from_before_the_table_are_copied(shelf: PgShelf, database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("DROP TABLE chunk_vectors"))
    shelf.shelve(*TEXTS)
    assert shelf.table.prepare() is None
    query = np.ones(384, np.float32) / np.float32(384) ** 0.5
    with pytest.raises(IndexUnavailable):
        shelf.index.search([query], 5, (60, 0))
    assert len(shelf.nearest("word1")) == 5, "the exact index answers meanwhile"
    shelf.index.come_in_step()
    assert len(shelf.index.search([query], 5, (60, 0))[0]) == 5


def test_who_keeps_vectors_while_the_table_is_made_keeps_them_there_too(shelf: PgShelf, database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("DROP TABLE chunk_vectors"))
    document = shelf.add()
    shelf.read(document, "geese hiss")
    with database.write() as connection:
        # As if somebody had kept a vector, and had not come to its end yet.
        connection.execute(text("LOCK TABLE embeddings IN ROW EXCLUSIVE MODE"))
        made = threading.Thread(target=shelf.table.prepare)
        made.start()
        made.join(0.2)
        assert made.is_alive()
    made.join(10)
    shelf.embed(document)
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM chunk_vectors")).scalar() == 1


@pytest.mark.long
def test_each_model_has_an_index_of_its_own_until_it_is_forgotten(shelf: PgShelf) -> None:
    shelf.shelve(*TEXTS)
    shelf.embeddings.keep("other", {"embedder": "other"}, 8, None)
    missing = [one.chunk_id for one in shelf.embeddings.without_embedding(1, "other")]
    rows = [(chunk_id, np.eye(8, dtype=np.float32)[n % 8].tobytes()) for n, chunk_id in enumerate(missing)]
    assert shelf.embeddings.keep_embeddings(1, "other", rows)
    index = shelf.index
    index.come_in_step()
    assert [valid for _, valid in shelf.index_names()] == [True, True]
    other = next(known for known in shelf.embeddings.models() if known.key == "other")
    nearest = shelf.table.nearest(other, np.eye(8, dtype=np.float32)[3].tobytes(), 1, None, indexed=True)
    assert nearest[0][1] == 1.0
    shelf.embeddings.forget("other")
    index.come_in_step()
    assert len(shelf.index_names()) == 1
    assert len(shelf.nearest("word1")) == 5


@pytest.mark.long
def test_of_servers_that_build_the_same_index_one_does(shelf: PgShelf, database: Database) -> None:
    shelf.shelve(*TEXTS)
    stores = shelf.embeddings, shelf.table, shelf.indexes
    indexes = [PgVectorIndex(*stores, known, indexed_from=1) for known in shelf.embeddings.models() * 3]
    problems: list[Exception] = []

    def build(index: PgVectorIndex) -> None:
        try:
            index.come_in_step()
        except StorageFailed as error:
            problems.append(error)

    threads = [threading.Thread(target=build, args=(index,), daemon=True) for index in indexes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    assert problems == []
    shelf.index.come_in_step()
    assert [valid for _, valid in shelf.index_names()] == [True]


@pytest.mark.long
def test_what_a_killed_build_left_is_built_again(shelf: PgShelf, database: Database) -> None:
    shelf.shelve(*TEXTS)
    shelf.index.come_in_step()
    with database.write() as connection:
        broken = "indrelid = to_regclass('chunk_vectors') AND NOT indisprimary"
        connection.execute(text(f"UPDATE pg_index SET indisvalid = false WHERE {broken}"))
    assert [valid for _, valid in shelf.index_names()] == [False]
    shelf.index.come_in_step()
    assert [valid for _, valid in shelf.index_names()] == [True]


@pytest.mark.long
def test_what_does_not_answer_leaves_search_to_the_exact_index(shelf: PgShelf, database: Database) -> None:
    shelf.shelve(*TEXTS)
    assert len(shelf.nearest("word1")) == 5
    with database.write() as connection:
        connection.execute(text("DROP TABLE chunk_vectors"))
    assert len(shelf.nearest("word1")) == 5


def test_an_extension_that_is_not_there_is_named(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.storage.documents.vector_table.OFFERED", "SELECT 1 WHERE false")
    assert VectorTable(database).prepare() == NOT_INSTALLED


def test_an_extension_that_may_not_be_created_or_is_too_old_is_named(
    database: Database, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_database.replace("+psycopg", ""), autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("CREATE ROLE plain LOGIN")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
        try:
            plain = Database(database.url.set(username="plain").render_as_string(hide_password=False))
            assert VectorTable(plain).prepare() == NOT_ALLOWED
            plain.close()
        finally:
            connection.execute("DROP OWNED BY plain")
            connection.execute("DROP ROLE plain")
    assert name
    monkeypatch.setattr("rag_assistant.storage.documents.vector_table.MIN_VERSION", (99, 0))
    assert (VectorTable(database).prepare() or "").startswith(TOO_OLD.partition("{")[0])
