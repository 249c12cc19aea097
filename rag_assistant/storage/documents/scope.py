"""Which documents are searched, as a condition in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    func,
    or_,
    select,
    true,
)

from rag_assistant.records import Scope
from rag_assistant.storage.database import Database
from rag_assistant.storage.full_text import holds
from rag_assistant.storage.id_lists import one_of
from rag_assistant.storage.ownership import readable
from rag_assistant.storage.prepared import Prepared
from rag_assistant.storage.tables import chunks, document_tags, documents

# Of so few chunks the ids are read; of more, only the documents of those that were found.
MAX_FEW = 2_000

_DOCUMENTS_OF = Prepared(select(chunks.c.id, chunks.c.document_id).where(one_of(chunks.c.id, "chunks")))


class ChunksInScope:
    """The chunks of a scope that whoever asks may read: as ids, or as a condition in SQL over the same database.

    It is made for one search.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self.database = database
        self._scope = scope

    @cached_property
    def size(self) -> int:
        """How many there are, with those of documents that are still read."""
        return sum(self._documents.values())

    @cached_property
    def few(self) -> set[int] | None:
        """The ids of all of them, ``None`` where there are more than ``MAX_FEW``."""
        if self.size > MAX_FEW:
            return None
        with self.database.read() as connection:
            return set(connection.execute(self._query(connection)).scalars())

    def among(self, chunk_ids: Sequence[int]) -> set[int]:
        """Return those of some ids that are ids of these chunks."""
        with self.database.read() as connection:
            if not self.database.is_sqlite:
                asked = self._query(connection).where(one_of(chunks.c.id, "chunks"))
                return set(connection.execute(asked, {"chunks": chunk_ids}).scalars())
            found = _DOCUMENTS_OF.rows(connection, {"chunks": chunk_ids})
            return {chunk_id for chunk_id, document_id in found if document_id in self._documents}

    def holds(self, connection: Connection, chunk_id: ColumnElement[int]) -> ColumnElement[bool]:
        """Return the condition that a chunk is one of them."""
        return chunk_id.in_(self._query(connection))

    def has_more_than(self, count: int, connection: Connection) -> bool:
        """Tell whether there are more than so many."""
        some = self._query(connection).limit(count + 1).subquery()
        return connection.execute(select(func.count()).select_from(some)).scalar_one() > count

    @cached_property
    def _documents(self) -> dict[int, int]:
        """The documents of the scope, each with how many chunks it has."""
        with self.database.read() as connection:
            query = select(documents.c.id, documents.c.chunks).where(in_scope(connection, documents.c.id, self._scope))
            return {row.id: row.chunks for row in connection.execute(query)}

    def _query(self, connection: Connection) -> Select[int]:
        return select(chunks.c.id).where(in_scope(connection, chunks.c.document_id, self._scope))


def in_scope(connection: Connection, document_id: ColumnElement[int], scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a document is one of those that are searched, and that may be read."""
    conditions = [readable(connection, document_id)]
    if scope.document_ids:
        conditions.append(document_id.in_(scope.document_ids))
    if scope.tags:
        tagged = select(document_tags.c.document_id).where(document_tags.c.tag.in_(scope.tags))
        conditions.append(document_id.in_(tagged))
    return and_(true(), *conditions)


def named_or_tagged(connection: Connection, sought: str) -> ColumnElement[bool]:
    """Return the condition that each word of a text stands in a document's name or in one of its tags."""
    return and_(true(), *(_has(connection, word) for word in sought.split()))


def _has(connection: Connection, word: str) -> ColumnElement[bool]:
    tagged = select(document_tags.c.document_id).where(holds(connection, document_tags.c.tag, word))
    return or_(holds(connection, documents.c.name, word), documents.c.id.in_(tagged))
