"""Keyword search over the chunks of documents."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Select, delete, func, insert, select, text

from rag_assistant.storage.database import Store
from rag_assistant.storage.documents.scope import ChunksInScope
from rag_assistant.storage.full_text import CHUNK_WORDS
from rag_assistant.storage.tables import word_changes

# One index lookup per language, however many chunks there are.
STATE = text(
    "WITH RECURSIVE found(language) AS (SELECT min(language) FROM chunks UNION ALL "
    "SELECT (SELECT min(language) FROM chunks WHERE language > found.language) FROM found "
    "WHERE found.language IS NOT NULL) SELECT language, (SELECT max(id) FROM chunks), "
    "(SELECT coalesce(max(id), 0) FROM word_changes) FROM found WHERE language IS NOT NULL"
)
# An in-memory index that is behind by more changes reads all words again.
MAX_CHANGES_KEPT = 10_000


class KeywordState(Struct, frozen=True):
    """What keyword search needs to know of the library: the languages of its chunks, and its latest state.

    The languages include ``""`` if that of some chunks is unknown. ``change`` moves with the words in SQLite;
    PostgreSQL, which searches them itself, records none.
    """

    languages: tuple[str, ...] = ()
    last_chunk: int = 0
    change: int | None = None


class KeywordIndex(Store):
    """The words of chunks. PostgreSQL searches them here; on SQLite, an in-memory index does."""

    def state(self) -> KeywordState:
        with self._database.read() as connection:
            rows = connection.execute(STATE).all()
        if not rows:
            return KeywordState()
        return KeywordState(tuple(row[0] for row in rows), rows[0][1], rows[0][2] if self._database.is_sqlite else None)

    def unknown(self, words: Sequence[str], within: ChunksInScope | None = None) -> set[str]:
        """Return which of the words no chunk contains, on PostgreSQL."""
        if within is not None:
            return {word for word in words if not self.search([word], 1, within)}
        with self._database.read() as connection:
            return {word for word, rows in CHUNK_WORDS.counted(connection, words, 0).items() if not rows}

    def search(self, words: Sequence[str], limit: int, within: ChunksInScope | None = None) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids with their score (higher is better) that contain any of ``words``.

        PostgreSQL only. With ``within``, only chunks in it.
        """
        with (within.database if within else self._database).read() as connection:
            only = within.holds(connection, CHUNK_WORDS.key) if within else None
            return CHUNK_WORDS.ranked_words.best(connection, words, limit, only)

    def changes_after(self, change: int) -> list[tuple[int, int, int]] | None:
        """Return the changes after one: number, first and last chunk. ``None`` if some are no longer recorded."""
        with self._database.read() as connection:
            later = select(word_changes).where(word_changes.c.id > change).order_by(word_changes.c.id)
            changes = [(n, first, last) for n, first, last in connection.execute(later)]
        return changes if not changes or changes[0][0] == change + 1 else None

    def words_between(self, first: int, last: int, limit: int) -> list[tuple[int, str]]:
        """Return the words of up to ``limit`` chunks with an id from ``first`` to ``last``, by id."""
        with self._database.read() as connection:
            words, key = CHUNK_WORDS.columns(connection)
            query = select(key, words.c.words).where(key.between(first, last)).order_by(key).limit(limit)
            return [(chunk_id, chunk_words) for chunk_id, chunk_words in connection.execute(query)]


def index_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Index the words of chunks, given as (id, words)."""
    CHUNK_WORDS.insert(connection, rows)
    if rows:
        ids = [chunk_id for chunk_id, _ in rows]
        _note_change(connection, min(ids), max(ids))


def drop_words(connection: Connection, ids: Select[Any]) -> None:
    """Remove the chunks that a query names from keyword search."""
    own = ids.subquery().c.id
    first, last = connection.execute(select(func.min(own), func.max(own))).one()
    if first is not None:
        CHUNK_WORDS.drop(connection, ids)
        _note_change(connection, first, last)


def _note_change(connection: Connection, first: int, last: int) -> None:
    if connection.dialect.name == "sqlite":
        note = insert(word_changes).values(first_chunk=first, last_chunk=last).returning(word_changes.c.id)
        forgotten = connection.execute(note).scalar_one() - MAX_CHANGES_KEPT
        connection.execute(delete(word_changes).where(word_changes.c.id <= forgotten))
