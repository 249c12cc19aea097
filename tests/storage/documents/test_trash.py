"""Documents in the trash: nothing finds them, and they come back as they were."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from rag_assistant.records import EVERYTHING, NewDocument, Scope
from rag_assistant.records.errors import DocumentNotFound, SameContent
from rag_assistant.storage import ownership
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import chunks, embeddings
from tests.conftest import both_engines
from tests.testkit.shelf import KEY, Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    shelf = Shelf(database)
    shelf.embedders.configured()
    return shelf


@pytest.mark.parametrize("passed_over", [0, 500], ids=["large", "small"])
def test_nothing_finds_a_document_in_the_trash_and_it_comes_back_without_being_embedded_again(
    shelf: Shelf, passed_over: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "MAX_CHUNKS_PASSED_OVER", passed_over)
    document, other = shelf.shelve("geese fly", "geese swim", tags=("birds",)), shelf.shelve("boats sail")
    version = shelf.embeddings.version(KEY)
    shelf.documents.trash(document.id)
    assert shelf.found("geese fly") == []
    assert shelf.found("boats sail") == ["boats sail"]
    assert (shelf.chunks.within(EVERYTHING) is None) == bool(passed_over)
    assert shelf.found("geese", scope=Scope((document.id,))) == []
    assert [one.id for one in shelf.documents.page(9)] == [other.id]
    assert (shelf.documents.tags(), shelf.documents.find("", EVERYTHING, 9)[1]) == ({}, 1)
    assert shelf.chunks.beginnings([document.id], 9) == {}
    for use in (shelf.documents.get, shelf.documents.text, shelf.documents.with_file, shelf.documents.trash):
        with pytest.raises(DocumentNotFound):
            use(document.id)
    assert [(one.id, one.state) for one in shelf.documents.trashed(9)] == [(document.id, "ready")]
    assert shelf.documents.known_files() == {"file of geese fly", "file of boats sail"}
    assert shelf.documents.restore(document.id).state == "ready"
    assert shelf.found("geese fly")[0] == "geese fly\ngeese swim"
    assert shelf.embeddings.version(KEY) == version


def test_the_same_content_may_come_again_meanwhile_and_then_stays_the_only_one(shelf: Shelf) -> None:
    document = shelf.shelve("geese fly")
    shelf.documents.trash(document.id)
    same = NewDocument("again.txt", "text/plain", 9, document.sha256, "another file")
    again, is_new = shelf.documents.add(same)
    assert (is_new, again.id != document.id) == (True, True)
    with pytest.raises(SameContent):
        shelf.documents.restore(document.id)


@both_engines
def test_what_was_long_enough_in_the_trash_leaves_nothing_behind(shelf: Shelf, database: Database) -> None:
    document = shelf.shelve("geese fly")
    shelf.documents.trash(document.id)
    moment = datetime.now(UTC)
    assert shelf.documents.trashed_before(moment - timedelta(days=1)) == []
    assert shelf.documents.trashed_before(moment + timedelta(seconds=9)) == [document.id]
    shelf.documents.delete(document.id, in_trash=True)
    with database.read() as connection:
        left = [connection.execute(select(func.count()).select_from(table)).scalar() for table in (chunks, embeddings)]
    assert (left, shelf.documents.files_to_delete()) == ([0, 0], ["file of geese fly"])


def test_work_on_a_document_ends_with_it_and_can_be_taken_up_again(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.read(document, "aa")
    newer = shelf.add("newer", replaces=document.id)
    shelf.documents.trash(newer.id)
    shelf.documents.trash(document.id)
    assert not shelf.read(document, "aa")
    assert shelf.documents.take_up_unfinished() == ([], [], [])
    assert [one.id for one in shelf.documents.trashed(9)] == [document.id]
    assert shelf.documents.restore(document.id).state == "cancelled"
    assert shelf.documents.queue_again(document.id).state == "queued"
