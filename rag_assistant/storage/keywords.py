"""Keyword search in SQL: FTS5 on SQLite, full text on PostgreSQL. The words come in ready-made, one blank apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, column, func, literal_column, select, table, text

from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import chunks

FTS = table("chunk_words", column("rowid"), column("words"))
ENGLISH: ColumnElement[Any] = literal_column("'english'::regconfig")
FULL_TEXT = table("chunk_words", column("chunk_id"), column("words"))


class KeywordIndex:
    """Finds chunks by their words, the best first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, words: Sequence[str], limit: int, document_ids: Sequence[int] = ()) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids with their score (higher is better) that hold any of ``words``.

        With ``document_ids``, only chunks of those documents. An empty list of words finds nothing.
        """
        if not words:
            return []
        query = self._sqlite_query(words) if self._database.is_sqlite else self._postgres_query(words)
        if document_ids:
            chunk_id = FTS.c.rowid if self._database.is_sqlite else FULL_TEXT.c.chunk_id
            query = query.where(chunk_id.in_(select(chunks.c.id).where(chunks.c.document_id.in_(document_ids))))
        with self._database.read() as connection:
            return [(row[0], row[1]) for row in connection.execute(query.limit(limit))]

    def _sqlite_query(self, words: Sequence[str]) -> Select[Any]:
        any_word = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        # FTS5's rank is BM25 with its sign turned: the smaller the better.
        return (
            select(FTS.c.rowid, -literal_column("rank"))
            .where(text("chunk_words MATCH :any_word").bindparams(any_word=any_word))
            .order_by(literal_column("rank"))
        )

    def _postgres_query(self, words: Sequence[str]) -> Select[Any]:
        any_word = " | ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words)
        wanted = func.to_tsquery(ENGLISH, any_word)
        # 1: a chunk's rank is divided by the logarithm of its length.
        score = func.ts_rank_cd(FULL_TEXT.c.words, wanted, 1).label("score")
        return (
            select(FULL_TEXT.c.chunk_id, score)
            .where(FULL_TEXT.c.words.op("@@")(wanted))
            .order_by(score.desc(), FULL_TEXT.c.chunk_id)
        )


def insert_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Index the words of chunks, given as (chunk id, words)."""
    if connection.dialect.name == "sqlite":
        statement = text("INSERT INTO chunk_words (rowid, words) VALUES (:chunk_id, :words)")
    else:
        statement = text("INSERT INTO chunk_words (chunk_id, words) VALUES (:chunk_id, to_tsvector('english', :words))")
    connection.execute(statement, [{"chunk_id": chunk_id, "words": words} for chunk_id, words in rows])


def drop_words(connection: Connection, chunk_ids: Select[Any]) -> None:
    """Forget the words of the chunks that the query names."""
    if connection.dialect.name == "sqlite":
        connection.execute(FTS.delete().where(FTS.c.rowid.in_(chunk_ids)))
    else:
        connection.execute(FULL_TEXT.delete().where(FULL_TEXT.c.chunk_id.in_(chunk_ids)))
