"""Documents in SQL, on SQLite and on PostgreSQL."""

import pytest
from sqlalchemy import func, select

from rag_assistant.records import Chunk, NewDocument, Scope
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import DocumentNotFound, SameContent
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.checks import LibraryChecks
from rag_assistant.storage.tables import (
    chunks,
    document_tags,
    document_texts,
    documents,
    embeddings,
)
from tests.conftest import both_engines
from tests.testkit.shelf import KEY, Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    shelf = Shelf(database)
    shelf.embedders.configured()
    return shelf


def count(database: Database, table: object) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def test_a_queued_document_is_taken_and_no_other(shelf: Shelf) -> None:
    document = shelf.add()
    taken = shelf.documents.take(document.id)
    assert taken is not None
    assert taken.state == "reading"
    shelf.read(document, "aa")
    assert shelf.documents.take(document.id) is None
    assert shelf.documents.take(99) is None


def test_a_document_of_another_installation_is_left_to_it(shelf: Shelf, database: Database) -> None:
    document = shelf.add()
    with database.write() as connection:
        connection.execute(documents.update().values(owner="there"))
    assert shelf.documents.take(document.id) is None
    assert shelf.documents.take_up_unfinished(recognises=True) == ([], [], [])
    assert shelf.documents.in_store() == []


@both_engines
def test_the_same_content_is_the_same_document_with_all_its_tags(shelf: Shelf) -> None:
    first = shelf.add(tags=("a",))
    same = NewDocument("other name.txt", "text/plain", 3, "sha of one", "other file", "/home/one.txt", tags=("b", "a"))
    again, new = shelf.documents.add(same)
    assert (again.id, again.name, again.tags, again.origin, new) == (
        first.id, "one.txt", ("a", "b"), None, False,
    )  # fmt: skip
    assert shelf.documents.known_files() == {"file of one"}
    assert shelf.documents.tags() == {"a": 1, "b": 1}


def test_name_and_tags_change_and_nothing_else(shelf: Shelf) -> None:
    document = shelf.add(tags=("a", "b"))
    assert shelf.documents.change(document.id, tags=["c"]).tags == ("c",)
    changed = shelf.documents.change(document.id, name="new.txt")
    assert (changed.name, changed.tags, changed.state) == ("new.txt", ("c",), "queued")
    with pytest.raises(DocumentNotFound):
        shelf.documents.change(99, tags=["x"])


def test_what_a_crash_left_half_done_is_taken_up_and_keeps_its_embeddings(shelf: Shelf) -> None:
    waiting, read, half = shelf.add("waiting"), shelf.add("read"), shelf.add("half")
    shelf.documents.take(read.id)
    shelf.read(half, "aa", "bb", "cc")
    first_chunk = shelf.embeddings.without_embedding(half.id, KEY)[0].chunk_id
    assert shelf.embeddings.keep_embeddings(half.id, KEY, [(first_chunk, b"\0" * 1536)])

    assert shelf.documents.take_up_unfinished(recognises=True) == ([waiting.id, read.id], [half.id], [])
    assert [one.text for one in shelf.embeddings.without_embedding(half.id, KEY)] == ["bb", "cc"]
    assert shelf.documents.get(half.id).embedded == 1


def test_a_document_is_ready_exactly_when_every_chunk_is_embedded(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.read(document, "aa", "bb")
    first = shelf.embeddings.without_embedding(document.id, KEY)[0].chunk_id
    shelf.embeddings.keep_embeddings(document.id, KEY, [(first, b"\0" * 1536)])
    assert not shelf.documents.finish(document.id, KEY)
    assert shelf.documents.get(document.id).state == "embedding"
    shelf.embed(document)
    assert not shelf.documents.finish(document.id, "another model")
    assert shelf.documents.finish(document.id, KEY)
    ready = shelf.documents.get(document.id)
    assert (ready.state, ready.embedded, ready.chunks) == ("ready", 2, 2)


def test_the_same_chunks_keep_their_embeddings_and_others_replace_them(shelf: Shelf, database: Database) -> None:
    document = shelf.shelve("aa", "bb")
    assert shelf.documents.queue_again(document.id).state == "queued"
    shelf.read(document, "aa", "bb")
    assert shelf.embeddings.without_embedding(document.id, KEY) == []
    shelf.documents.finish(document.id, KEY)
    shelf.documents.queue_again(document.id)
    shelf.read(document, "aabb")
    assert [one.text for one in shelf.embeddings.without_embedding(document.id, KEY)] == ["aabb"]
    assert count(database, chunks) == 1
    assert shelf.embeddings.version(KEY) == (2, 2)


def test_a_cancelled_document_is_forgotten_but_for_its_file(shelf: Shelf, database: Database) -> None:
    document = shelf.add()
    shelf.read(document, "aa", "bb")
    missing = shelf.embeddings.without_embedding(document.id, KEY)
    cancelled = shelf.documents.cancel(document.id)
    assert (cancelled.state, cancelled.chunks) == ("cancelled", 0)
    assert not shelf.embeddings.keep_embeddings(document.id, KEY, [(one.chunk_id, b"\0" * 1536) for one in missing])
    assert not shelf.documents.finish(document.id, KEY)
    shelf.documents.fail(document.id, "too late")
    assert shelf.documents.get(document.id).state == "cancelled"
    assert [count(database, table) for table in (chunks, document_texts, embeddings)] == [0, 0, 0]
    assert shelf.documents.known_files() == {"file of one"}
    assert shelf.documents.queue_again(document.id).state == "queued"


def test_a_finished_document_cannot_be_cancelled(shelf: Shelf) -> None:
    document = shelf.shelve("aa")
    assert shelf.documents.cancel(document.id).state == "ready"
    assert shelf.found("aa") == ["aa"]


@both_engines
def test_a_newer_version_becomes_the_document_in_one_step(shelf: Shelf, database: Database) -> None:
    old = shelf.shelve("old text", tags=("t",))
    newer = shelf.add("newer", replaces=old.id)
    shelf.read(newer, "new text", "more")
    shelf.embed(newer)
    assert shelf.documents.finish(newer.id, KEY)
    assert shelf.documents.files_to_delete() == ["file of old text"]
    (left,) = shelf.documents.page(10)
    assert (left.id, left.sha256, left.chunks, left.embedded, left.tags, left.replaces) == (
        old.id, "sha of newer", 2, 2, ("t",), None,
    )  # fmt: skip
    assert shelf.documents.text(old.id).text == "new text\nmore"
    assert shelf.documents.known_files() == {"file of newer"}
    assert [count(database, table) for table in (chunks, document_texts, embeddings, documents)] == [2, 1, 2, 1]
    assert shelf.embeddings.version(KEY) == (3, 1)


def test_a_newer_version_of_a_document_that_went_away_goes_with_it(shelf: Shelf, database: Database) -> None:
    old = shelf.shelve("old text")
    newer = shelf.add("newer", replaces=old.id)
    shelf.read(newer, "new text")
    shelf.documents.delete(old.id)
    assert sorted(shelf.documents.files_to_delete()) == ["file of newer", "file of old text"]
    assert [count(database, table) for table in (chunks, document_texts, embeddings, documents)] == [0, 0, 0, 0]
    with pytest.raises(DocumentNotFound):
        shelf.add("newest", replaces=old.id)


def test_the_newest_of_several_versions_wins(shelf: Shelf) -> None:
    old = shelf.shelve("old text")
    first = shelf.add("first", replaces=old.id)
    shelf.read(first, "first text")
    second = shelf.add("second", replaces=first.id)
    assert second.replaces == old.id, "a version on its way stands for what it replaces"
    with pytest.raises(DocumentNotFound):
        shelf.documents.get(first.id)
    shelf.read(second, "second text")
    shelf.embed(second)
    shelf.documents.finish(second.id, KEY)
    assert [document.id for document in shelf.documents.page(10)] == [old.id]
    assert shelf.documents.text(old.id).text == "second text"


def test_a_newer_version_brings_its_tags(shelf: Shelf) -> None:
    old = shelf.shelve("old text", tags=("a",))
    newer = shelf.add("newer", replaces=old.id, tags=("b",))
    shelf.read(newer, "new text")
    shelf.embed(newer)
    shelf.documents.finish(newer.id, KEY)
    assert shelf.documents.get(old.id).tags == ("a", "b")


def test_a_newer_version_cannot_have_the_content_of_another_document(shelf: Shelf) -> None:
    old, other = shelf.shelve("old text"), shelf.shelve("other text")
    with pytest.raises(SameContent, match=f"Document {other.id} already has this content"):
        shelf.add("other text", replaces=old.id)
    same = NewDocument("x", "text/plain", 1, "sha of old text", "file", replaces=old.id)
    assert shelf.documents.add(same)[0].id == old.id


def test_a_ready_document_that_was_to_be_read_again_is_ready_when_that_is_cancelled(shelf: Shelf) -> None:
    document = shelf.shelve("old text")
    shelf.documents.queue_again(document.id)
    assert shelf.documents.cancel(document.id).state == "ready"
    assert shelf.found("old text") == ["old text"]


def test_what_failed_for_want_of_embeddings_is_ready_once_it_has_them(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.read(document, "aa")
    shelf.documents.fail(document.id, "The model is away.")
    shelf.embed(document)
    assert shelf.documents.finish(document.id, KEY)
    ready = shelf.documents.get(document.id)
    assert (ready.state, ready.reason, ready.embedded) == ("ready", None, 1)


def test_chunks_that_are_distrusted_twice_are_replaced_all_the_same(shelf: Shelf) -> None:
    document = shelf.shelve("old text")
    before = {number for number, _ in shelf.embeddings.vectors_after(KEY, 0, 10)}
    for _ in range(2):
        shelf.chunks.distrust(document.id)
    shelf.documents.queue_again(document.id)
    shelf.read(document, "old text")
    shelf.embed(document)
    assert not before & {number for number, _ in shelf.embeddings.vectors_after(KEY, 0, 10)}


def test_what_could_not_be_read_is_never_ready(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.documents.take(document.id)
    shelf.documents.fail(document.id, "It is empty.")
    assert not shelf.documents.finish(document.id, KEY)
    assert shelf.documents.get(document.id).state == "failed"


def test_deleting_leaves_nothing_behind(shelf: Shelf, database: Database) -> None:
    document, _other = shelf.shelve("aa", "bb", tags=("t",)), shelf.shelve("cc", "dd")
    held = {chunk_id for chunk_id, _ in shelf.embeddings.vectors_after(KEY, 0, 10)}
    shelf.documents.delete(document.id)
    assert shelf.documents.files_to_delete() == ["file of aa"]
    left = {chunk_id for chunk_id, _ in shelf.embeddings.vectors_after(KEY, 0, 10)}
    assert len(left) == 2
    assert {one.chunk_id for one in shelf.chunks.passages(dict.fromkeys(held, 0.0))} == left
    assert [count(database, table) for table in (chunks, document_texts, embeddings, document_tags)] == [2, 1, 2, 0]
    assert shelf.embeddings.version(KEY) == (4, 2)
    with pytest.raises(DocumentNotFound):
        shelf.documents.get(document.id)


def test_a_document_that_goes_away_while_it_is_worked_on_stays_away(shelf: Shelf, database: Database) -> None:
    document = shelf.add()
    shelf.read(document, "aa")
    missing = shelf.embeddings.without_embedding(document.id, KEY)
    shelf.documents.delete(document.id)
    assert not shelf.read(document, "aa")
    assert not shelf.embeddings.keep_embeddings(document.id, KEY, [(one.chunk_id, b"\0" * 1536) for one in missing])
    assert [count(database, table) for table in (chunks, document_texts, embeddings)] == [0, 0, 0]


def test_ids_of_deleted_chunks_are_not_given_again(shelf: Shelf) -> None:
    first = shelf.add("one")
    shelf.read(first, "aa", "bb")
    old = {one.chunk_id for one in shelf.embeddings.without_embedding(first.id, KEY)}
    shelf.documents.delete(first.id)
    second = shelf.add("two")
    shelf.read(second, "aa", "bb")
    assert not old & {one.chunk_id for one in shelf.embeddings.without_embedding(second.id, KEY)}


def test_what_stands_between_two_chunks_that_touch_is_kept_with_the_second(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.documents.take(document.id)
    text = "aaaa\n\nbbbb" + " " * 13 + "cccc dddd"
    places = ((0, 4, None), (6, 10, None), (23, 27, None), (28, 32, 2))
    pieces = [Chunk(n, start, end, text[start:end], page) for n, (start, end, page) in enumerate(places)]
    assert shelf.chunks.keep_text(document.id, ExtractedText(text, "text/plain"), pieces, ["w"] * len(pieces))
    within = shelf.chunks.within(Scope((document.id,)))
    assert within is not None
    found = shelf.chunks.passages(dict.fromkeys(within.ids.all().tolist(), 0.0))
    assert [passage.gap for passage in found] == [None, "\n\n", None, None]


def test_a_place_in_a_text_is_in_the_section_of_the_chunk_above_it(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.documents.take(document.id)
    pieces = [Chunk(0, 0, 4, "aaaa"), Chunk(1, 5, 9, "bbbb", section="Prices > Europe")]
    assert shelf.chunks.keep_text(document.id, ExtractedText("aaaa bbbb", "text/plain"), pieces, ["aaaa", "bbbb"])
    assert [shelf.chunks.section_at(document.id, place) for place in (0, 4, 5, 100)] == [
        None, None, "Prices > Europe", "Prices > Europe",
    ]  # fmt: skip
    assert shelf.chunks.section_at(99, 0) is None


def test_words_that_came_after_a_search_are_no_damage(shelf: Shelf, database: Database) -> None:
    shelf.shelve("grey geese")
    assert len(shelf.keywords.search(["gees"], 5)) == 1
    shelf.shelve("white swans")
    assert LibraryChecks(database).database_damage() == []
