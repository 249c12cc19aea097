"""Keyword search over the chunks of documents."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, select, text

from rag_assistant.records import EVERYTHING, Scope
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.scope import in_scope
from rag_assistant.storage.full_text import CHUNK_WORDS
from rag_assistant.storage.ownership import reads_everything
from rag_assistant.storage.prepared import Prepared
from rag_assistant.storage.tables import chunks

# Each language is one look into the index, however many chunks are in it.
LANGUAGES = Prepared(
    text(
        "WITH RECURSIVE found(language) AS (SELECT min(language) FROM chunks UNION ALL "
        "SELECT (SELECT min(language) FROM chunks WHERE language > found.language) FROM found "
        "WHERE found.language IS NOT NULL) SELECT language FROM found WHERE language IS NOT NULL"
    )
)


class KeywordIndex:
    """Finds chunks by their words, the best first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def languages(self) -> list[str]:
        """Return the languages by which chunks are indexed, ``""`` among them if some are in none that is known."""
        with self._database.read() as connection:
            return [language for (language,) in LANGUAGES.rows(connection)]

    def unknown(self, words: Sequence[str]) -> set[str]:
        """Return those of some words that no chunk holds."""
        with self._database.read() as connection:
            if reads_everything(connection):
                return {word for word, rows in CHUNK_WORDS.counted(connection, words, 0).items() if not rows}
            readable = self._within(connection, EVERYTHING)
            return {word for word in words if not CHUNK_WORDS.best(connection, [word], 1, readable)}

    def search(self, words: Sequence[str], limit: int, scope: Scope = EVERYTHING) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids of the scope with their score (higher is better) that hold any of ``words``.

        An empty list of words finds nothing.
        """
        if not words:
            return []
        with self._database.read() as connection:
            everything = not scope and reads_everything(connection)
            return CHUNK_WORDS.best(connection, words, limit, None if everything else self._within(connection, scope))

    @staticmethod
    def _within(connection: Connection, scope: Scope) -> ColumnElement[bool]:
        found = select(chunks.c.id).where(in_scope(connection, chunks.c.document_id, scope))
        return CHUNK_WORDS.among(connection, found)
