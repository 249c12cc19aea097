"""Copy a database to another one with the same schema, on either engine, in small batches to save memory."""

from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from rag_assistant.storage.conversations.turn_endings import words_found_by
from rag_assistant.storage.conversations.turn_rows import as_turns
from rag_assistant.storage.full_text import CHUNK_WORDS, TURN_WORDS, WordIndex
from rag_assistant.storage.tables import chunks, conversations, documents, metadata, people, processes, turns

ROWS_AT_ONCE = 200
# A text may have twenty million characters.
TEXTS_AT_ONCE = {"document_texts": 2, "answer_versions": 20, "receipts": 20}


def is_empty(connection: sa.Connection) -> bool:
    """Return whether a database holds no data yet."""
    return all(
        connection.execute(sa.select(table).limit(1)).first() is None for table in (conversations, documents, people)
    )


def copy_database(source: sa.Connection, target: sa.Connection, words_of: Callable[[str], str]) -> None:
    """Replace a database's contents with another's, without processes. ``words_of`` gives the words for its index."""
    for table in reversed(metadata.sorted_tables):
        target.execute(sa.delete(table))
    for index in (CHUNK_WORDS, TURN_WORDS):
        target.execute(index.columns(target)[0].delete())
    for table in metadata.sorted_tables:
        if table is not processes:
            _copy_rows(table, source, target)
    _copy_words(CHUNK_WORDS, chunks, source, target)
    if source.dialect.name == "sqlite":
        _copy_words(TURN_WORDS, turns, source, target)
    else:
        _index_turns(source, target, words_of)
    for table in metadata.sorted_tables:
        if table.dialect_options["sqlite"]["autoincrement"]:
            _copy_last_id(table, source, target)


def _copy_rows(table: sa.Table, source: sa.Connection, target: sa.Connection) -> None:
    rows_at_once = TEXTS_AT_ONCE.get(table.name, ROWS_AT_ONCE)
    query = sa.select(*(_as_stored(column, source).label(f"new_{column.name}") for column in table.c))
    statement = sa.insert(table).values({column.name: _to_store(column, target) for column in table.c})
    for rows in _batches(source, query, rows_at_once):
        target.execute(statement, [dict(row._mapping) for row in rows])


def _batches(connection: sa.Connection, query: Any, rows_at_once: int) -> Iterator[Any]:
    with connection.execution_options(yield_per=rows_at_once).execute(query) as result:
        yield from result.partitions()


def _as_stored(column: sa.ColumnElement[Any], source: sa.Connection) -> sa.ColumnElement[Any]:
    """Return a column's value as stored: JSON as text, in which null differs from a missing value."""
    if not isinstance(column.type, sa.JSON):
        return column
    return sa.type_coerce(column, sa.Text) if source.dialect.name == "sqlite" else sa.cast(column, sa.Text)


def _to_store(column: Any, target: sa.Connection) -> sa.ColumnElement[Any]:
    value: sa.BindParameter[Any] = sa.bindparam(
        f"new_{column.name}", type_=sa.Text if isinstance(column.type, sa.JSON) else column.type
    )
    is_json = isinstance(column.type, sa.JSON) and target.dialect.name != "sqlite"
    return sa.cast(value, sa.JSON) if is_json else value


def _copy_words(index: WordIndex, table: sa.Table, source: sa.Connection, target: sa.Connection) -> None:
    words, key = index.columns(source)
    query = sa.select(key.label("id"), index.text(source).label("words")).join(table, table.c.id == key)
    for rows in _batches(source, query.select_from(words), ROWS_AT_ONCE):
        index.insert(target, [(row.id, row.words or "") for row in rows])


def _index_turns(source: sa.Connection, target: sa.Connection, words_of: Callable[[str], str]) -> None:
    """Index the turns again: PostgreSQL stores stems, from which no other index can be made."""
    words, key = TURN_WORDS.columns(source)
    for rows in _batches(source, sa.select(turns).join(words, key == turns.c.id), ROWS_AT_ONCE):
        indexed = as_turns(source, [row._mapping for row in rows])
        TURN_WORDS.insert(target, [(one.id, words_found_by(one.question, one.answer, words_of)) for one in indexed])


def _copy_last_id(table: sa.Table, source: sa.Connection, target: sa.Connection) -> None:
    """Make sure that no id is reused, not even that of a deleted row."""
    sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
    if source.dialect.name == "sqlite":
        query = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name").bindparams(name=table.name)
    else:
        query = sa.text(f"SELECT pg_sequence_last_value({sequence}::regclass)")
    last = source.execute(query).scalar()
    if not last:
        return
    if target.dialect.name == "sqlite":
        target.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        statement = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
        target.execute(statement, {"name": table.name, "last": last})
    else:
        target.execute(sa.text(f"SELECT setval({sequence}, :last)"), {"last": last})
