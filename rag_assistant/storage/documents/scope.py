"""Which documents are searched, as a condition in SQL."""

from __future__ import annotations

import orjson
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, true

from rag_assistant.records import Scope
from rag_assistant.storage.database import Database
from rag_assistant.storage.ownership import readable
from rag_assistant.storage.tables import chunks, document_tags, documents


class ChunksInScope:
    """The chunks of a scope that whoever asks may read: as ids, or as a condition in SQL over the same database."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self.database = database
        self._scope = scope

    def ids(self) -> set[int]:
        """Return the ids of all of them."""
        with self.database.read() as connection:
            query = self._query(connection)
            if not self.database.is_sqlite:
                return set(connection.execute(query).scalars())
            # All in one value, since a row for each of them takes six times as long.
            together = select(func.json_group_array(query.subquery().c.id))
            return set(orjson.loads(connection.execute(together).scalar_one()))

    def holds(self, connection: Connection, chunk_id: ColumnElement[int]) -> ColumnElement[bool]:
        """Return the condition that a chunk is one of them."""
        return chunk_id.in_(self._query(connection))

    def has_more_than(self, count: int, connection: Connection) -> bool:
        """Tell whether there are more than so many."""
        some = self._query(connection).limit(count + 1).subquery()
        return connection.execute(select(func.count()).select_from(some)).scalar_one() > count

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


def named_or_tagged(sought: str) -> ColumnElement[bool]:
    """Return the condition that each word of a text stands in a document's name or in one of its tags."""
    return and_(true(), *(_holds(word) for word in sought.split()))


def _holds(word: str) -> ColumnElement[bool]:
    tagged = select(document_tags.c.document_id).where(document_tags.c.tag.icontains(word, autoescape=True))
    return or_(documents.c.name.icontains(word, autoescape=True), documents.c.id.in_(tagged))
