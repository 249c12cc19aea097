"""Keyword search over the chunks of documents."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from rag_assistant.records import EVERYTHING, Scope
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.scope import in_scope
from rag_assistant.storage.full_text import CHUNK_WORDS
from rag_assistant.storage.tables import chunks


class KeywordIndex:
    """Finds chunks by their words, the best first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unknown(self, words: Sequence[str]) -> set[str]:
        """Return those of some words that no chunk holds."""
        with self._database.read() as connection:
            return {word for word, rows in CHUNK_WORDS.counted(connection, words, 0).items() if not rows}

    def search(self, words: Sequence[str], limit: int, scope: Scope = EVERYTHING) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids of the scope with their score (higher is better) that hold any of ``words``.

        An empty list of words finds nothing.
        """
        if not words:
            return []
        with self._database.read() as connection:
            within = select(chunks.c.id).where(in_scope(chunks.c.document_id, scope))
            return CHUNK_WORDS.best(connection, words, limit, CHUNK_WORDS.among(connection, within) if scope else None)
