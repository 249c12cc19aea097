"""Consistency checks of the library in SQL: counters, texts, words and vectors that don't match."""

from contextlib import closing
from typing import Any

from sqlalchemy import Connection, Select, func, select, text, update

from rag_assistant.records import lead_of
from rag_assistant.records.errors import StorageDamaged
from rag_assistant.storage.database import Database, Store
from rag_assistant.storage.full_text import CHUNK_WORDS
from rag_assistant.storage.tables import chunks, document_texts, documents, embedders, embeddings

Ids = list[int]
_CHUNKS = select(func.count()).where(chunks.c.document_id == documents.c.id).scalar_subquery()
_VECTORS = select(func.count()).where(embeddings.c.embedder == embedders.c.key).scalar_subquery()


class LibraryChecks(Store):
    """Each method looks for one kind of damage and returns the affected documents."""

    def database_damage(self) -> list[str]:
        """Return the problems SQLite finds in its own file; PostgreSQL isn't checked.

        This needs a new connection: one that has searched before remembers the word index as it was then, and SQLite
        3.53 reports what has changed since as a wrong checksum.
        """
        if not self._database.is_sqlite:
            return []
        try:
            with closing(Database(str(self._database.url))) as alone, alone.read() as connection:
                lines = list(connection.execute(text("PRAGMA quick_check(10)")).scalars())
        except StorageDamaged as error:
            return [str(getattr(error.__cause__, "orig", error.__cause__))]
        return [] if lines == ["ok"] else [str(line) for line in lines]

    def badly_cut(self) -> Ids:
        """Return the documents whose chunks don't match their text, or don't cover it."""
        with self._database.read() as connection:
            done = select(documents.c.id).where(documents.c.state == "ready", documents.c.deleted_at.is_(None))
            return [one for one in connection.execute(done).scalars().all() if not _is_covered(connection, one)]

    def without_words(self) -> Ids:
        """Return the documents with chunks missing from keyword search."""
        words, key = CHUNK_WORDS.columns(self._database)
        ready = select(documents.c.id).where(documents.c.state == "ready", documents.c.deleted_at.is_(None))
        indexed = select(key).select_from(words)
        unknown = chunks.c.id.not_in(indexed), chunks.c.document_id.in_(ready)
        return self._sorted(select(chunks.c.document_id).where(*unknown))

    def stray_words(self) -> Ids:
        """Return the ids of keyword search entries that belong to no chunk."""
        words, key = CHUNK_WORDS.columns(self._database)
        return self._values(select(key).select_from(words).where(key.not_in(select(chunks.c.id))))

    def drop_stray_words(self) -> None:
        """Delete those entries."""
        stray = self.stray_words()
        with self._database.write() as connection:
            CHUNK_WORDS.drop(connection, stray)

    def with_broken_vectors(self) -> Ids:
        """Return the documents with a vector of the wrong length."""
        return self._sorted(_broken_vectors(select(chunks.c.document_id)))

    def drop_broken_vectors(self) -> None:
        """Delete those vectors; they will be recreated."""
        with self._database.write() as connection:
            broken = list(connection.execute(_broken_vectors(select(chunks.c.id))).scalars())
            connection.execute(embeddings.delete().where(embeddings.c.chunk_id.in_(broken)))
        self.recount()

    def lacking_vectors(self, embedder: str) -> Ids:
        """Return the ready documents that have a chunk without a vector of this model."""
        has_one = select(embeddings.c.chunk_id).where(embeddings.c.embedder == embedder)
        lacking = (
            select(chunks.c.document_id)
            .join(documents, documents.c.id == chunks.c.document_id)
            .where(documents.c.state == "ready", chunks.c.id.not_in(has_one))
        )
        return self._sorted(lacking)

    def wrong_counts(self) -> Ids:
        """Return the documents whose stored number of chunks is wrong."""
        return self._sorted(select(documents.c.id).where(documents.c.chunks != _CHUNKS))

    def wrong_versions(self) -> list[str]:
        """Return the models whose counters don't match the stored vectors."""
        return self._values(select(embedders.c.key).where(embedders.c.additions - embedders.c.deletions != _VECTORS))

    def recount(self) -> None:
        """Correct all counters."""
        with self._database.write() as connection:
            connection.execute(update(documents).values(chunks=_CHUNKS))
            deletions = embedders.c.deletions + 1  # Both change, so that every index sees that it is out of date.
            connection.execute(update(embedders).values(deletions=deletions, additions=deletions + _VECTORS))

    def _sorted(self, query: Select[Any]) -> Ids:
        return sorted(self._values(query.distinct()))


def _is_covered(connection: Connection, document_id: int) -> bool:
    whole = connection.execute(select(document_texts.c.text).where(document_texts.c.document_id == document_id))
    held = whole.scalar() or ""
    rows = connection.execute(
        select(chunks.c.start, chunks.c.end, chunks.c.text)
        .where(chunks.c.document_id == document_id)
        .order_by(chunks.c.start)
    )
    reached = 0
    for row in rows:
        own = row.text.removeprefix(lead_of(row.text, row.start, row.end))
        if held[row.start : row.end] != own or held[reached : row.start].strip():
            return False
        reached = max(reached, row.end)
    return not held[reached:].strip()


def _broken_vectors(query: Select[Any]) -> Select[Any]:
    return (
        query.select_from(embeddings)
        .join(chunks, chunks.c.id == embeddings.c.chunk_id)
        .join(embedders, embedders.c.key == embeddings.c.embedder)
        .where(func.length(embeddings.c.vector) != 4 * embedders.c.dimension)
    )
