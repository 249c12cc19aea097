"""Whether the database answers, for whoever watches the server."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy import text

from rag_assistant.runtime.probe import MAX_SECONDS, Probe
from rag_assistant.storage.database import sqlite_module

if TYPE_CHECKING:
    from rag_assistant.storage.database import Database

QUESTION = "SELECT id FROM turns LIMIT 1"


def database_probe(database: Database) -> Probe:
    """Return what asks the database each time: it is ``ready``, ``missing`` or ``failed``.

    SQLite's file is ``missing`` if it went, or if another one has taken its place.
    """

    def ask() -> str:
        if database.is_sqlite and not database.file_is_ours():
            return "missing"
        if database.is_sqlite:
            # A connection of its own reads the file, and not what another one remembers of it.
            address = f"{database.file.resolve().as_uri()}?mode=ro"
            with closing(sqlite_module().connect(address, uri=True, timeout=MAX_SECONDS)) as connection:
                connection.execute(QUESTION).fetchall()
        else:
            with database.engine.connect() as connection:
                connection.execute(text(QUESTION))
        return "ready"

    return Probe("database", ask, silent="failed")
