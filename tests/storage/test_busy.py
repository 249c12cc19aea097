"""Somebody else holds the database: what waits goes on, and nothing is reported that is not so."""

import shutil
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection

from rag_assistant.records.errors import DatabaseUnavailable, SettingsError, StorageFailed
from rag_assistant.storage import database as module
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.database import Database, sqlite_url


@pytest.fixture
def opened(tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_MS", 200)
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    return Database(sqlite_url(tmp_path))


def test_a_database_that_stays_locked_is_a_failure_of_storage(opened: Database, tmp_path: Path) -> None:
    # The same library: two of them in one process do not see the locks of one another.
    other = module.sqlite_module().connect(str(tmp_path / "assistant.db"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailable, match="Another program keeps the database locked"):
        ConversationManager(opened).create("One")
    with pytest.raises(DatabaseUnavailable):
        AnswerLog(opened, "here").append_all([(1, 0, "text")])
    other.execute("COMMIT")
    assert ConversationManager(opened).create("Two").title == "Two"
    other.close()
    opened.close()


def test_on_a_disk_that_may_only_be_read_what_is_there_is_read_and_writing_is_refused(opened: Database) -> None:
    conversations = ConversationManager(opened)
    made = conversations.create("One")

    def read_only(connection: DBAPIConnection, *_: object) -> None:
        connection.cursor().execute("PRAGMA query_only = ON")

    opened.close()
    event.listen(opened.engine, "checkout", read_only)
    with pytest.raises(StorageFailed, match="Nothing that was stored is lost"):
        conversations.create("Two")
    assert conversations.get(made.id).title == "One"
    event.remove(opened.engine, "checkout", read_only)
    opened.close()
    assert conversations.create("Two").title == "Two"
    opened.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://u:secret@h/d", "postgresql+nodriver://u:secret@h/d"])
def test_a_database_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="postgresql") as refused:
        Database(url)
    assert "secret" not in str(refused.value)
