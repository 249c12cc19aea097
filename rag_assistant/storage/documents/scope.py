"""Which documents are searched, as a condition in SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, or_, select, true

from rag_assistant.records import Scope
from rag_assistant.storage.ownership import readable
from rag_assistant.storage.tables import document_tags, documents


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
