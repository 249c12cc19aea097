"""Row ownership as SQL conditions: the rows of the connection's person, or all if there is none.

A store over ``Database.for_person`` sees what that person may see, and nothing else.
"""

from functools import partial
from typing import Any

import sqlalchemy as sa

from rag_assistant.records.errors import LibraryNotFound
from rag_assistant.settings.package_files import OF_GUIDE
from rag_assistant.storage import tables
from rag_assistant.storage.database import Bound, changes_documents, person_of

# With up to this many chunks in the trash, a search fetches that many more hits and skips them; else it excludes them.
MAX_CHUNKS_PASSED_OVER = 500
_TRASHED = sa.select(sa.func.coalesce(sa.func.sum(tables.documents.c.chunks), 0)).where(
    tables.documents.c.deleted_at.is_not(None)
)
_FIRST_ADMIN = sa.select(sa.func.min(tables.people.c.id)).where(tables.people.c.role == "admin").scalar_subquery()
TRASHED_CHUNKS = _TRASHED.scalar_subquery()

# Not a page of the guide.
OF_A_PERSON = sa.func.coalesce(tables.documents.c.origin, "").not_like(f"{OF_GUIDE}%")
# For statements that are built once: the person of a connection, and below the same conditions.
PERSON = sa.bindparam("person", type_=sa.Integer)
OF_PERSON = PERSON.is_(None) | (tables.conversations.c.person_id == PERSON)


def own_conversations(bound: Bound, *, of_few: bool = False) -> sa.ColumnElement[bool]:
    """Return the condition that a conversation belongs to the person of a connection.

    ``of_few``: the other conditions match fewer rows than the person has, so SQLite should evaluate those first.
    """
    person, owner = person_of(bound), tables.conversations.c.person_id
    return sa.true() if person is None else (owner + 0 if of_few else owner) == person


def owner_of_new(bound: Bound) -> int | sa.ScalarSelect[int]:
    """Return the owner of a new row; of one without a person, as from a command, the first administrator."""
    return _FIRST_ADMIN if (person := person_of(bound)) is None else person


def key_of(bound: Bound, key: str) -> str:
    """Return an Idempotency-Key as stored: the same key of two people is two keys."""
    person = person_of(bound)
    return key if person is None else f"{person} {key}"


def readable(bound: Bound, document_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition that a document is readable by the person of a connection and not in the trash."""
    person = person_of(bound)
    if person is None:
        return document_id.not_in(sa.select(tables.documents.c.id).where(tables.documents.c.deleted_at.is_not(None)))
    return document_id.in_(sa.select(tables.documents.c.id).where(in_readable_library(bound)))


def in_readable_library(bound: Bound, *, in_trash: bool = False) -> sa.ColumnElement[bool]:
    """Return the same condition for queries on the documents table; ``in_trash``: for those in the trash."""
    person = person_of(bound)
    deleted_at = tables.documents.c.deleted_at
    where = deleted_at.is_not(None) if in_trash else deleted_at.is_(None)
    return where if person is None else where & tables.documents.c.library_id.in_(libraries_of(person))


def writable(bound: Bound) -> sa.ColumnElement[bool]:
    """Return the condition that the person of a connection may change the documents of a document's library."""
    person = person_of(bound)
    if not changes_documents(bound):
        return sa.false()
    return sa.true() if person is None else tables.documents.c.library_id.in_(libraries_of(person, "write"))


def reads_everything(connection: sa.Connection) -> bool:
    """Return whether the person of a connection may read every document; a small trash doesn't count."""
    if connection.execute(_TRASHED).scalar_one() > MAX_CHUNKS_PASSED_OVER:
        return False
    person = person_of(connection)
    if person is None:
        return True
    hidden = tables.documents.c.library_id.is_(None) | tables.documents.c.library_id.not_in(libraries_of(person))
    return connection.execute(sa.select(tables.documents.c.id).where(hidden).limit(1)).first() is None


def library_for_new(connection: sa.Connection, requested: int | None) -> int:
    """Return a new document's library: the requested one or the person's first. Raises LibraryNotFound."""
    person = person_of(connection)
    chosen = sa.select(tables.libraries.c.id).order_by(tables.libraries.c.id).limit(1)
    if requested is not None:
        chosen = chosen.where(tables.libraries.c.id == requested)
        if person is not None:
            chosen = chosen.where(tables.libraries.c.id.in_(libraries_of(person, "write")))
    elif person is not None:
        chosen = chosen.where(tables.libraries.c.person_id == person)
    # Nobody deletes it until the document is in it.
    library_id: int | None = connection.execute(chosen.with_for_update(read=True, key_share=True)).scalar()
    if library_id is None:
        raise LibraryNotFound(requested or 0)
    return library_id


def shared_with(
    table: sa.Table, item_id: sa.Column[int], person: int | sa.ColumnElement[int], access: str | None = None
) -> sa.Select[tuple[int]]:
    """Return the query for the rows of a table that a person may read or use, or with ``access`` write."""
    shares = item_id.table
    shared = sa.select(item_id).where(shares.c.person_id == person)
    everyone: sa.ColumnElement[bool] = table.c.everyone.is_not(None)
    if access is not None:
        shared, everyone = shared.where(shares.c.access == access), table.c.everyone == access
    return sa.select(table.c.id).where(sa.or_(table.c.person_id == person, everyone, table.c.id.in_(shared)))


libraries_of = partial(shared_with, tables.libraries, tables.library_shares.c.library_id)
projects_of = partial(shared_with, tables.projects, tables.project_shares.c.project_id)
grids_of = partial(shared_with, tables.grids, tables.grid_shares.c.grid_id)


def readable_project(bound: Bound, project_id: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a project exists and the person of a connection may use it."""
    person = person_of(bound)
    return project_id.in_(sa.select(tables.projects.c.id) if person is None else projects_of(person))


IN_READABLE_LIBRARY = tables.documents.c.deleted_at.is_(None) & (
    PERSON.is_(None) | tables.documents.c.library_id.in_(libraries_of(PERSON))
)
