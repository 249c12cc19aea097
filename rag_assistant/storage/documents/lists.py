"""Lists of documents: page by page, in an order, some of them; and how many there are."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, func, select

from rag_assistant.records import EVERYTHING, Document, DocumentSort, DocumentState, Scope
from rag_assistant.storage.database import Store
from rag_assistant.storage.documents.rows import as_documents, name_key
from rag_assistant.storage.documents.scope import in_scope, named_or_tagged
from rag_assistant.storage.ownership import readable
from rag_assistant.storage.tables import document_tags, documents, documents_to_index

# The columns that have an index, together with the id.
SORT_COLUMNS = {"added": documents.c.id, "name": documents.c.name_key, "size": documents.c.size_bytes}


class DocumentLists(Store):
    """Reads which documents there are."""

    def page(
        self,
        limit: int,
        before_id: int | None = None,
        tag: str | None = None,
        sought: str = "",
        state: DocumentState | None = None,
    ) -> list[Document]:
        """Return up to ``limit`` documents with an id below ``before_id``, the newest first.

        With ``tag``, only those that have it; with ``sought``, those whose name or one of whose tags holds the text;
        with ``state``, those that have come as far as that.
        """
        with self._database.read() as connection:
            conditions = _chosen(connection, tag, sought, () if state is None else (state,))
            if before_id is not None:
                conditions.append(documents.c.id < before_id)
            query = select(documents).where(*conditions).order_by(documents.c.id.desc()).limit(limit)
            return as_documents(connection, query)

    def sorted_page(
        self,
        sort: DocumentSort,
        limit: int,
        offset: int,
        tag: str | None = None,
        sought: str = "",
        states: Collection[DocumentState] = (),
    ) -> list[Document]:
        """Return up to ``limit`` documents in an order, without the first ``offset``; for the rest see ``page``."""
        column = SORT_COLUMNS[sort.removeprefix("-")]
        order = [one.desc() if sort.startswith("-") else one.asc() for one in dict.fromkeys((column, documents.c.id))]
        with self._database.read() as connection:
            query = select(documents).where(*_chosen(connection, tag, sought, states)).order_by(*order)
            return as_documents(connection, query.limit(limit).offset(offset))

    def totals(self, tag: str | None = None, sought: str = "") -> dict[DocumentState, tuple[int, int]]:
        """Return how many documents are in each state, and how many bytes their files have."""
        counted = select(documents.c.state, func.count(), func.sum(documents.c.size_bytes))
        with self._database.read() as connection:
            query = counted.where(*_chosen(connection, tag, sought)).group_by(documents.c.state)
            return {state: (count, int(size)) for state, count, size in connection.execute(query)}

    def waiting_to_be_indexed(self) -> int:
        """Return how many documents wait for their words to be indexed, in another way than before an upgrade."""
        waiting = select(func.count()).select_from(documents_to_index)
        with self._database.read() as connection:
            own = readable(connection, documents_to_index.c.document_id)
            return connection.execute(waiting.where(own)).scalar_one()

    def names(self, document_ids: Collection[int]) -> dict[int, str]:
        """Return the names of documents by their id; what is gone is left out."""
        with self._database.read() as connection:
            named = documents.c.id.in_(document_ids), readable(connection, documents.c.id)
            rows = connection.execute(select(documents.c.id, documents.c.name).where(*named))
            return {row.id: row.name for row in rows}

    def find(self, name_contains: str, scope: Scope, limit: int) -> tuple[list[Document], int]:
        """Return up to ``limit`` documents whose name contains a text, the newest first, and how many there are.

        Upper and lower case are the same (in ASCII). Newer versions that are not ready yet are left out.
        """
        conditions: list[ColumnElement[bool]] = [documents.c.replaces.is_(None)]
        if name_contains:
            conditions.append(documents.c.name.icontains(name_contains, autoescape=True))
        with self._database.read() as connection:
            conditions.append(in_scope(connection, documents.c.id, scope))
            query = select(documents).where(*conditions).order_by(documents.c.id.desc()).limit(limit)
            total = connection.execute(select(func.count()).select_from(documents).where(*conditions)).scalar_one()
            return as_documents(connection, query), total

    def has(self, name: str) -> bool:
        """Return whether a document has this name."""
        named = select(documents.c.id).where(documents.c.name_key == name_key(name), documents.c.name == name)
        with self._database.read() as connection:
            return connection.execute(named.where(readable(connection, documents.c.id)).limit(1)).first() is not None

    def tags(self) -> dict[str, int]:
        """Return every tag with how many documents have it, in the order of the alphabet."""
        counted = select(document_tags.c.tag, func.count().label("documents"))
        with self._database.read() as connection:
            query = counted.where(readable(connection, document_tags.c.document_id))
            query = query.group_by(document_tags.c.tag).order_by("tag")
            return {row.tag: row.documents for row in connection.execute(query)}


def _chosen(
    connection: Connection, tag: str | None, sought: str, states: Collection[DocumentState] = ()
) -> list[ColumnElement[bool]]:
    scope = EVERYTHING if tag is None else Scope(tags=(tag,))
    conditions = [in_scope(connection, documents.c.id, scope)]
    if sought:
        conditions.append(named_or_tagged(connection, sought))
    if states:
        conditions.append(documents.c.state.in_(states))
    return conditions
