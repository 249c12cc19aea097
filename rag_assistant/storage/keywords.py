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

# FTS5 scores every row that holds any of the words, at 1.4 to 2.5 ms of CPU for 1,000. Beyond so many, the rarest
# words alone choose the candidates, and all words rank them: at 100,000 chunks half the time, and 97 % of the first
# ten hits are the same.
MOST_SCORED = 10_000
CANDIDATES = 300

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
            # FTS5's rank is BM25 with its sign turned: the smaller the better.
            return (
                select(self._fts.c.rowid, -literal_column("rank"))
                .where(self._holds_any(words))
                .order_by(literal_column("rank"))
            )
        any_word = " | ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words)
        wanted = func.to_tsquery(ENGLISH, any_word)
        key = self._full_text.c[self._key]
        # 1: a row's rank is divided by the logarithm of its length.
        score = func.ts_rank_cd(self._full_text.c.words, wanted, 1).label("score")
        return select(key, score).where(self._full_text.c.words.op("@@")(wanted)).order_by(score.desc(), key)

    def rarest(self, connection: Connection, words: Sequence[str], most_rows: int) -> list[str]:
        """Return the rarest of ``words`` (SQLite), at least one, as many as stand in ``most_rows`` rows together."""
        counted = []
        for word in words:
            rows = select(self._fts.c.rowid).where(self._holds_any([word])).limit(most_rows + 1).subquery()
            counted.append((connection.execute(select(func.count()).select_from(rows)).scalar_one(), word))
        kept: list[str] = []
        left = most_rows
        for rows_with_word, word in sorted(counted, key=lambda one: one[0]):
            left -= rows_with_word
            if kept and left < 0:
                break
            kept.append(word)
        return kept

    def ranked(self, words: Sequence[str], ids: Sequence[int]) -> Select[Any]:
        """Return the query for (id, score) of those of ``ids`` that hold any of ``words``, the best first (SQLite)."""
        score = (-func.bm25(literal_column(self._name))).label("score")
        # Without the plus, FTS5 would look for each row anew; ordered by its own rank, it would score them all.
        chosen = literal_column("+rowid").in_(ids)
        return select(self._fts.c.rowid, score).where(self._holds_any(words), chosen).order_by(score.desc())

    def _holds_any(self, words: Sequence[str]) -> ColumnElement[bool]:
        any_word = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        return literal_column(self._name).op("MATCH", is_comparison=True)(any_word)


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
            if not scope and self._is_too_much(connection, words):
                rarest = CHUNK_WORDS.rarest(connection, words, MOST_SCORED)
                if len(rarest) < len(words):
                    found = connection.execute(CHUNK_WORDS.query(connection, rarest).limit(max(limit, CANDIDATES)))
                    ranked = CHUNK_WORDS.ranked(words, [row[0] for row in found]).limit(limit)
                    return [(row[0], row[1]) for row in connection.execute(ranked)]
            query = CHUNK_WORDS.query(connection, words)
            if scope:
                _, chunk_id = CHUNK_WORDS.columns(connection)
                query = query.where(chunk_id.in_(select(chunks.c.id).where(in_scope(chunks.c.document_id, scope))))
            return [(row[0], row[1]) for row in connection.execute(query.limit(limit))]

    def _is_too_much(self, connection: Connection, words: Sequence[str]) -> bool:
        """Return whether the words could stand in more rows than are scored at once (SQLite; elsewhere never)."""
        if connection.dialect.name != "sqlite":
            return False
        chunks_at_most = connection.execute(select(func.max(chunks.c.id))).scalar() or 0
        return len(words) * chunks_at_most > MOST_SCORED
