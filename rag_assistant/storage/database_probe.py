"""Whether the database answers, asked anew each time and within a second: for whoever watches the server."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Literal

from sqlalchemy import text

from rag_assistant.storage.database import sqlite_module

if TYPE_CHECKING:
    from rag_assistant.storage.database import Database

log = logging.getLogger(__name__)

MAX_SECONDS = 1.0
QUESTION = "SELECT id FROM turns LIMIT 1"

DatabaseState = Literal["ready", "missing", "failed"]


class DatabaseProbe:
    """Asks the database. SQLite's file is ``missing`` if it went, or if another one has taken its place."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._said: DatabaseState = "failed"

    def state(self) -> DatabaseState:
        """Return how the database is; ``failed`` if it does not say so within a second."""
        with self._lock:
            if self._asking is None or not self._asking.is_alive():
                self._said = "failed"
                self._asking = threading.Thread(target=self._ask, name="database-probe", daemon=True)
                self._asking.start()
            self._asking.join(MAX_SECONDS)
            return "failed" if self._asking.is_alive() else self._said

    def _ask(self) -> None:
        database = self._database
        try:
            if database.is_sqlite and not database.file_is_ours():
                self._said = "missing"
                return
            if database.is_sqlite:
                # A connection of its own reads the file, and not what another one remembers of it.
                address = f"{database.file.resolve().as_uri()}?mode=ro"
                with closing(sqlite_module().connect(address, uri=True, timeout=MAX_SECONDS)) as connection:
                    connection.execute(QUESTION).fetchall()
            else:
                with database.engine.connect() as connection:
                    connection.execute(text(QUESTION))
            self._said = "ready"
        except Exception as error:  # noqa: BLE001 - whatever it is, it does not answer
            log.error("The database does not answer: %s", error)
