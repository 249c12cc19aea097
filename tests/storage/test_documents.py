"""Documents in SQL, on SQLite and on PostgreSQL."""

import pytest
from sqlalchemy import func, select

from rag_assistant.errors import DocumentNotFound
from rag_assistant.records import Chunk, Document, ExtractedText
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents import DocumentStore
from rag_assistant.storage.tables import chunks, document_texts, embeddings

VECTOR = b"\0" * 16


@pytest.fixture
def store(database: Database) -> DocumentStore:
    return DocumentStore(database, "here")


def add(store: DocumentStore, content: str = "one") -> Document:
    document, new = store.add(f"{content}.txt", "text/plain", len(content), f"sha of {content}", f"file of {content}")
    assert new
    return document


def read(store: DocumentStore, document: Document, *texts: str) -> bool:
    """Keep the texts as the chunks of a document."""
    whole = "".join(texts)
    pieces = [Chunk(n, whole.index(text), whole.index(text) + len(text), text, None) for n, text in enumerate(texts)]
    return store.keep_text(document.id, ExtractedText(whole, "text/plain"), pieces, list(texts))


def embed(store: DocumentStore, document: Document, embedder: str = "e") -> bool:
    rows = [(chunk_id, VECTOR) for chunk_id, _ in store.without_embedding(document.id, embedder)]
    return store.keep_embeddings(document.id, embedder, rows)


def test_the_oldest_queued_document_is_taken_and_only_once(store: DocumentStore) -> None:
    first, second = add(store, "one"), add(store, "two")
    taken = [store.take_queued(), store.take_queued(), store.take_queued()]
    assert [document and (document.id, document.state) for document in taken] == [
        (first.id, "reading"), (second.id, "reading"), None,
    ]  # fmt: skip


def test_the_same_content_is_the_same_document(store: DocumentStore) -> None:
    first = add(store)
    again, new = store.add("other name.txt", "text/plain", 3, "sha of one", "other file")
    assert (again.id, again.name, new) == (first.id, "one.txt", False)
    assert store.known_files() == {"file of one"}


def test_what_a_crash_left_half_done_is_queued_again_and_keeps_its_embeddings(store: DocumentStore) -> None:
    document = add(store)
    store.take_queued()
    read(store, document, "aa", "bb", "cc")
    first_chunk = store.without_embedding(document.id, "e")[0][0]
    store.keep_embeddings(document.id, "e", [(first_chunk, VECTOR)])

    assert store.requeue_unfinished() == 1
    store.take_queued()
    read(store, document, "aa", "bb", "cc")
    assert [text for _, text in store.without_embedding(document.id, "e")] == ["bb", "cc"]
    assert store.get(document.id).embedded == 1


def test_other_chunks_replace_the_old_ones(store: DocumentStore, database: Database) -> None:
    document = add(store)
    read(store, document, "aa", "bb")
    embed(store, document)
    read(store, document, "aabb")
    assert [text for _, text in store.without_embedding(document.id, "e")] == ["aabb"]
    assert count(database, chunks) == 1
    assert store.library_version() == (2, 2)


def test_another_embedder_embeds_everything_anew(store: DocumentStore) -> None:
    document = add(store)
    read(store, document, "aa", "bb")
    embed(store, document, "e")
    assert len(store.without_embedding(document.id, "f")) == 2
    assert store.vectors_after("f", 0, 10) == []


def test_deleting_leaves_nothing_behind(store: DocumentStore, database: Database) -> None:
    document, other = add(store, "one"), add(store, "two")
    for one in (document, other):
        read(store, one, "aa", "bb")
        embed(store, one)
    held = {chunk_id for chunk_id, _ in store.vectors_after("e", 0, 10)}
    assert store.delete(document.id) == "file of one"
    left = {chunk_id for chunk_id, _ in store.vectors_after("e", 0, 10)}
    assert len(left) == 2
    assert set(store.passages(sorted(held))) == left
    assert [count(database, table) for table in (chunks, document_texts, embeddings)] == [2, 1, 2]
    assert store.library_version() == (4, 2)
    with pytest.raises(DocumentNotFound):
        store.get(document.id)


def test_a_document_that_goes_away_while_it_is_worked_on_stays_away(store: DocumentStore, database: Database) -> None:
    document = add(store)
    read(store, document, "aa")
    missing = store.without_embedding(document.id, "e")
    store.delete(document.id)
    assert not read(store, document, "aa")
    assert not store.keep_embeddings(document.id, "e", [(chunk_id, VECTOR) for chunk_id, _ in missing])
    assert [count(database, table) for table in (chunks, document_texts, embeddings)] == [0, 0, 0]


def test_ids_of_deleted_chunks_are_not_given_again(store: DocumentStore) -> None:
    first = add(store, "one")
    read(store, first, "aa", "bb")
    old = {chunk_id for chunk_id, _ in store.without_embedding(first.id, "e")}
    store.delete(first.id)
    second = add(store, "two")
    read(store, second, "aa", "bb")
    assert not old & {chunk_id for chunk_id, _ in store.without_embedding(second.id, "e")}


def count(database: Database, table: object) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]
