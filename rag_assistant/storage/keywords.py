"""Keyword search in SQL: FTS5 on SQLite, full text on PostgreSQL. The words come in ready-made, one blank apart.

Two things are found by their words: chunks of documents, and turns of conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TableClause, column, func, literal_column, select, table, text

from rag_assistant.records import EVERYTHING, Scope
from rag_assistant.storage.database import Database
from rag_assistant.storage.scope import in_scope
from rag_assistant.storage.tables import chunks

ENGLISH: ColumnElement[Any] = literal_column("'english'::regconfig")


class WordIndex:
    """The words of the rows of a table. ``name`` is the index's table, ``key`` its column for the row's id."""

    def __init__(self, name: str, key: str) -> None:
        self._name = name
        self._key = key
        self._fts = table(name, column("rowid"), column("words"))
        self._full_text = table(name, column(key), column("words"))

    def insert(self, connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
        """Index the words of rows, given as (id, words)."""
        if connection.dialect.name == "sqlite":
            statement = text(f"INSERT INTO {self._name} (rowid, words) VALUES (:id, :words)")  # noqa: S608 - our names
        else:
            statement = text(
                f"INSERT INTO {self._name} ({self._key}, words) VALUES (:id, to_tsvector('english', :words))"  # noqa: S608
            )
        connection.execute(statement, [{"id": row_id, "words": words} for row_id, words in rows])

    def drop(self, connection: Connection, ids: Select[Any]) -> None:
        """Forget the words of the rows that the query names."""
        words, key = self.columns(connection)
        connection.execute(words.delete().where(key.in_(ids)))

    def columns(self, connection: Connection) -> tuple[TableClause, ColumnElement[Any]]:
        """Return the index's table and the column that holds the rows' ids."""
        if connection.dialect.name == "sqlite":
            return self._fts, self._fts.c.rowid
        return self._full_text, self._full_text.c[self._key]

    def query(self, connection: Connection, words: Sequence[str]) -> Select[Any]:
        """Return the query for (id, score) of the rows that hold any of ``words``, the best first.

        ``words`` must not be empty. A score is higher for a better hit, and comparable within one query only.
        """
        if connection.dialect.name == "sqlite":
            any_word = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
            # FTS5's rank is BM25 with its sign turned: the smaller the better.
            return (
                select(self._fts.c.rowid, -literal_column("rank"))
                .where(text(f"{self._name} MATCH :any_word").bindparams(any_word=any_word))
                .order_by(literal_column("rank"))
            )
        any_word = " | ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words)
        wanted = func.to_tsquery(ENGLISH, any_word)
        key = self._full_text.c[self._key]
        # 1: a row's rank is divided by the logarithm of its length.
        score = func.ts_rank_cd(self._full_text.c.words, wanted, 1).label("score")
        return select(key, score).where(self._full_text.c.words.op("@@")(wanted)).order_by(score.desc(), key)


CHUNK_WORDS = WordIndex("chunk_words", "chunk_id")
TURN_WORDS = WordIndex("turn_words", "turn_id")


class KeywordIndex:
    """Finds chunks by their words, the best first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, words: Sequence[str], limit: int, scope: Scope = EVERYTHING) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids of the scope with their score (higher is better) that hold any of ``words``.

        An empty list of words finds nothing.
        """
        if not words:
            return []
        with self._database.read() as connection:
            query = CHUNK_WORDS.query(connection, words)
            if scope:
                _, chunk_id = CHUNK_WORDS.columns(connection)
                query = query.where(chunk_id.in_(select(chunks.c.id).where(in_scope(chunks.c.document_id, scope))))
            return [(row[0], row[1]) for row in connection.execute(query.limit(limit))]
