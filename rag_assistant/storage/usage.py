"""Whether the database responds, and how much it holds, for administrators."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

from sqlalchemy import Executable, func, select, text, update

from rag_assistant.records.errors import StorageFailed
from rag_assistant.runtime.background import MAX_SECONDS, Probe
from rag_assistant.storage.database import Database, sqlite_module
from rag_assistant.storage.full_text import CHUNK_WORDS, TURN_WORDS
from rag_assistant.storage.tables import conversations, documents, embedders, processes, turns

BYTES_PER_NUMBER = 4  # Vectors are float32.


def usage_of(database: Database) -> dict[str, Any]:
    """Return counts, documents by their state, and the ``bytes`` of the database, of two parts of it, and of the trash.

    The schema must be the current one.
    """
    sizes = sizes_of(database)
    if database.is_sqlite:
        of_words = ["SELECT sum(length(words)) FROM chunk_words", "SELECT sum(length(block)) FROM turn_words_data"]
    else:
        of_words = [f"SELECT pg_total_relation_size('{index.name}')" for index in (CHUNK_WORDS, TURN_WORDS)]
    with database.read() as connection:
        deleted = conversations.c.deleted_at.is_not(None)
        listed = connection.execute(select(func.count(), func.count().filter(deleted)).select_from(conversations)).one()
        turn_count = connection.scalar(select(func.count()).select_from(turns))
        words = sum(int(connection.scalar(text(query)) or 0) for query in of_words)
    return {
        "conversations": listed[0] - listed[1],
        "conversations_in_trash": listed[1],
        "turns": turn_count or 0,
        "documents": documents_by_state(database),
        "bytes": {"database": sizes["database"], "full_text": words, **sizes},
    }


def sizes_of(database: Database) -> dict[str, int]:
    """Return what is quickly read: the bytes of the database, of the vectors in it, and of files in the trash."""
    whole = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    if not database.is_sqlite:
        whole = "SELECT pg_database_size(current_database())"
    vectors = func.sum((embedders.c.additions - embedders.c.deletions) * embedders.c.dimension * BYTES_PER_NUMBER)
    trash = select(func.sum(documents.c.size_bytes)).where(documents.c.deleted_at.is_not(None))
    queries: dict[str, Executable] = {"database": text(whole), "vectors": select(vectors), "trash": trash}
    with database.read() as connection:
        return {part: int(connection.scalar(query) or 0) for part, query in queries.items()}


def documents_by_state(database: Database) -> dict[str, int]:
    current = documents.c.deleted_at.is_(None)
    states = select(documents.c.state, func.count()).where(current).group_by(documents.c.state)
    with database.read() as connection:
        return {state: count for state, count in connection.execute(states)}  # noqa: C416 - rows are no pairs to mypy


QUESTION = "SELECT id FROM turns LIMIT 1"
WRITE_INTERVAL_SECONDS = 10.0


def database_probe(database: Database) -> Probe:
    """Return a probe of the database: ``ready``, ``failed``, or ``missing`` if SQLite's file is gone or replaced."""

    def ask() -> str | None:
        if database.is_sqlite and not database.file_is_ours():
            return "missing"
        if database.is_sqlite:
            # A new connection reads the file, not what another one has cached.
            address = f"{database.file.resolve().as_uri()}?mode=ro"
            with closing(sqlite_module().connect(address, uri=True, timeout=MAX_SECONDS)) as connection:
                connection.execute(QUESTION).fetchall()
        else:
            with database.engine.connect() as connection:
                connection.execute(text(QUESTION))
        return None

    return Probe("database", ask, silent="failed")


def write_probe(database: Database, process: Callable[[], str]) -> Probe:
    """Return a probe that tries a write: it is ``ready``, ``full``, ``failed``, or ``locked`` beyond a second."""

    def ask() -> str | None:
        if database.reserve is not None and not database.reserve.keep():
            return "full"
        try:
            with database.write() as connection:
                own = processes.c.id == process()
                connection.execute(update(processes).where(own).values(beats=processes.c.beats + 1))
        except StorageFailed as error:
            return "full" if "is full" in str(error) else "failed"
        return None

    return Probe("database-writes", ask, silent="locked", max_age_seconds=WRITE_INTERVAL_SECONDS)
