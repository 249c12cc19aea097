"""Reading documents: rows, records, lists and scanned pages; and the small steps that changes consist of."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import astuple
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, func, insert, select, update

from rag_assistant.records import EVERYTHING, Document, DocumentSort, DocumentState, Scope
from rag_assistant.records.documents import RecognisedPage, Word
from rag_assistant.records.errors import DocumentNotFound, LibraryReadOnly
from rag_assistant.storage.database import Bound, Store, insert_rows, person_of, record_of, set_values
from rag_assistant.storage.documents.chunks import drop_chunks
from rag_assistant.storage.documents.embeddings import chunks_without
from rag_assistant.storage.documents.scope import in_scope, named_or_tagged
from rag_assistant.storage.ownership import OF_A_PERSON, in_readable_library, libraries_of, readable, writable
from rag_assistant.storage.processes import is_working
from rag_assistant.storage.tables import (
    chunks,
    deleted_files,
    document_tags,
    document_texts,
    documents,
    former_ids,
    libraries,
    processes,
    scanned_pages,
)

# In place of an embedding model's errors, which may name its address.
OWNER_SEES_WHY = "Only the owner of its library sees why its embeddings are missing."


class ScanStore(Store):
    """Stores the results of text recognition page by page, so that a restart continues where it stopped."""

    def add(self, document_id: int, pages: Collection[int]) -> dict[int, RecognisedPage]:
        """Record a document's scanned pages; return an earlier reading's results, without the pages that failed."""
        own = scanned_pages.c.document_id == document_id
        with self._database.write() as connection:
            strange = scanned_pages.c.page.not_in(pages)
            connection.execute(delete(scanned_pages).where(own, strange | scanned_pages.c.problem.is_not(None)))
            listed = set(connection.execute(select(scanned_pages.c.page).where(own)).scalars())
            new = [{"document_id": document_id, "page": page} for page in pages if page not in listed]
            insert_rows(connection, scanned_pages, new)
            _count(connection, document_id)
        return self.recognised(document_id)

    def pending(self, document_id: int) -> list[int]:
        """Return the pages still to be recognised."""
        pending = scanned_pages.c.document_id == document_id, scanned_pages.c.lines.is_(None)
        return self._values(select(scanned_pages.c.page).where(*pending).order_by(scanned_pages.c.page))

    def keep(self, document_id: int, page: RecognisedPage) -> bool:
        """Store the text of a page; return False if its document was deleted or cancelled meanwhile."""
        lines = [[list(astuple(word)) for word in line] for line in page.lines]
        with self._database.write() as connection:
            state = select(documents.c.state).where(documents.c.id == document_id).with_for_update()
            if connection.execute(state).scalar() != "recognising":
                return False
            this = (scanned_pages.c.document_id == document_id, scanned_pages.c.page == page.page)
            connection.execute(update(scanned_pages).where(*this).values(lines=lines, problem=page.problem))
            _count(connection, document_id)
            return True

    def recognised(self, document_id: int, page: int | None = None) -> dict[int, RecognisedPage]:
        """Return the recognised text of a document's pages, or of one page, by page."""
        recognised = scanned_pages.c.document_id == document_id, scanned_pages.c.lines.is_not(None)
        query = select(scanned_pages).where(*recognised)
        if page is not None:
            query = query.where(scanned_pages.c.page == page)
        pages = {}
        for row in self._rows(query):
            lines = tuple(tuple(Word(*word) for word in line) for line in row["lines"])
            pages[row["page"]] = RecognisedPage(row["page"], lines, row["problem"])
        return pages


def drop_scans(connection: Connection, document_id: int) -> None:
    """Delete the scanned pages of a document."""
    connection.execute(delete(scanned_pages).where(scanned_pages.c.document_id == document_id))


def give_up_scans(connection: Connection, document_id: int, problem: str) -> None:
    """Record why the remaining scanned pages of a document won't be recognised."""
    pending = scanned_pages.c.document_id == document_id, scanned_pages.c.lines.is_(None)
    connection.execute(update(scanned_pages).where(*pending).values(lines=[], problem=problem))
    _count(connection, document_id)


def _count(connection: Connection, document_id: int) -> None:
    own = scanned_pages.c.document_id == document_id
    counted = select(func.count(), func.count(scanned_pages.c.lines)).where(own)
    scanned, recognised = connection.execute(counted).one()
    this = update(documents).where(documents.c.id == document_id)
    connection.execute(this.values(scanned_pages=scanned, recognised_pages=recognised))


# States in which a document is worked on, or about to be.
UNFINISHED: tuple[DocumentState, ...] = ("queued", "reading", "recognising", "embedding")
NO_WORKER = "No worker is running; this continues when one does."
SORTED_DIGITS = 12
IDS_AT_ONCE = 10_000  # PostgreSQL takes 65,535 parameters.
# The columns that a newer version brings to the document it replaces.
TAKEN_OVER = (
    *("media_type", "size_bytes", "content_key", "sha256", "owner", "file", "chunks", "page_starts", "figures"),
    *("scanned_pages", "recognised_pages", "dates", "date", "date_from"),
)


def name_key(name: str) -> str:
    """Return the sort key of a name: case is ignored, and 2 sorts before 10."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[0-9]+", lambda digits: digits[0].zfill(SORTED_DIGITS), folded)


def row_of(connection: Connection, document_id: int, *, in_trash: bool = False) -> RowMapping:
    """Return a document's row, locked until the end of the transaction. Raises DocumentNotFound."""
    this = documents.c.id == document_id, in_readable_library(connection, in_trash=in_trash)
    row = connection.execute(select(documents).where(*this).with_for_update()).mappings().first()
    if row is None:
        raise DocumentNotFound(document_id)
    return row


def row_to_change(connection: Connection, document_id: int, *, in_trash: bool = False) -> RowMapping:
    """Return the row of a document to change. Raises DocumentNotFound, LibraryReadOnly."""
    row = row_of(connection, document_id, in_trash=in_trash)
    own = select(documents.c.id).where(documents.c.id == document_id, writable(connection))
    if connection.execute(own).first() is None:
        raise LibraryReadOnly(row["name"])
    return row


def content_key(library_id: int | None, sha256: str) -> str:
    """Return the unique key of a content in a library."""
    return f"{library_id} {sha256}"


def drop_pending_versions(connection: Connection, replaces: int, but: int = 0) -> None:
    """Drop a document's pending newer versions."""
    pending = documents.c.replaces == replaces, documents.c.id != but
    for version in connection.execute(select(documents).where(*pending)).mappings().all():
        drop_document(connection, version)


def drop_document(connection: Connection, row: RowMapping) -> None:
    """Delete a document, and mark its file for deletion."""
    drop_chunks(connection, row["id"])
    connection.execute(delete(documents).where(documents.c.id == row["id"]))
    drop_file(connection, row)


def drop_file(connection: Connection, row: RowMapping) -> None:
    """Mark a document's file for deletion."""
    connection.execute(insert(deleted_files).values(file=row["file"], owner=row["owner"]))


def load_document(connection: Connection, document_id: int) -> Document:
    """Return a document with its tags. Raises DocumentNotFound."""
    query = select(documents).where(documents.c.id == document_id, readable(connection, documents.c.id))
    for document in as_documents(connection, query):
        return document
    raise DocumentNotFound(document_id)


def add_tags(connection: Connection, document_id: int, tags: Sequence[str]) -> None:
    own = select(document_tags.c.tag).where(document_tags.c.document_id == document_id)
    here = set(connection.execute(own).scalars())
    new = [{"document_id": document_id, "tag": tag} for tag in dict.fromkeys(tags) if tag not in here]
    insert_rows(connection, document_tags, new)


def is_whole(connection: Connection, document: RowMapping, embedder: str) -> bool:
    """Return whether all chunks of a document exist and have vectors."""
    own = chunks.c.document_id == document["id"]
    held = connection.execute(select(func.count()).select_from(chunks).where(own)).scalar_one()
    lacking = connection.execute(chunks_without(embedder).where(own).limit(1)).first()
    return 0 < held == document["chunks"] and lacking is None


def take_its_place(connection: Connection, newer: RowMapping, finished: dict[str, Any]) -> None:
    """Finish a document; if it is a newer version, put it in place of the older one."""
    older = connection.execute(select(documents).where(documents.c.id == newer["replaces"])).mappings().first()
    if older is None:
        set_values(connection, documents, newer["id"], finished)
        return
    newer_tags = select(document_tags.c.tag).where(document_tags.c.document_id == newer["id"])
    add_tags(connection, older["id"], connection.execute(newer_tags).scalars().all())
    drop_chunks(connection, older["id"])
    drop_scans(connection, older["id"])
    for table in (document_texts, chunks, scanned_pages):
        connection.execute(update(table).where(table.c.document_id == newer["id"]).values(document_id=older["id"]))
    connection.execute(delete(documents).where(documents.c.id == newer["id"]))
    connection.execute(insert(former_ids).values(id=newer["id"], document_id=older["id"]))
    set_values(connection, documents, older["id"], {name: newer[name] for name in TAKEN_OVER} | finished)
    drop_file(connection, older)


def _names_model(row: RowMapping) -> bool:
    return (row["reason"] or "").startswith("The embedding model")


def as_documents(connection: Connection, query: Select[Any]) -> list[Document]:
    """Return the documents of a query with their tags; those that wait for a worker say so."""
    rows = connection.execute(query).mappings().all()
    waiting = any(row["state"] in UNFINISHED for row in rows)
    in_vain = waiting and connection.execute(select(processes.c.id).where(is_working).limit(1)).first() is None
    tags: dict[int, list[str]] = {}
    for start in range(0, len(rows), IDS_AT_ONCE):
        ids = [row["id"] for row in rows[start : start + IDS_AT_ONCE]]
        named = select(document_tags).where(document_tags.c.document_id.in_(ids)).order_by(document_tags.c.tag)
        for document_id, tag in connection.execute(named):
            tags.setdefault(document_id, []).append(tag)
    matches, others = [], set[int]()
    if person_of(connection) is not None and any(map(_names_model, rows)):
        of_others = select(libraries.c.id).where(libraries.c.person_id != person_of(connection))
        others = set(connection.execute(of_others).scalars())
    for row in rows:
        reason = NO_WORKER if in_vain and row["state"] in UNFINISHED else row["reason"]
        reason = OWNER_SEES_WHY if _names_model(row) and row["library_id"] in others else reason
        own = {"reason": reason, "pages": len(row["page_starts"] or ()) or None, "tags": tags.get(row["id"], ())}
        matches.append(record_of({**row, **own}, Document))
    return matches


# The columns that have an index, together with the id.
SORT_COLUMNS = {
    "added": documents.c.id,
    "date": documents.c.date,
    "name": documents.c.name_key,
    "size": documents.c.size_bytes,
}


class DocumentLists(Store):
    """Lists documents."""

    def page(
        self,
        limit: int,
        before_id: int | None = None,
        *,
        sort: DocumentSort = "-added",
        offset: int = 0,
        tag: str | None = None,
        sought: str = "",
        states: Collection[DocumentState] = (),
        guide: bool = True,
    ) -> list[Document]:
        """Return up to ``limit`` documents in an order, with an id below ``before_id`` or after the first ``offset``.

        ``tag`` selects those with it, ``sought`` those with the text in their name or a tag, ``states`` those in these
        states; without ``guide``, a person's own.
        """
        column = SORT_COLUMNS[sort.removeprefix("-")]
        order = [one.desc() if sort.startswith("-") else one.asc() for one in dict.fromkeys((column, documents.c.id))]
        with self._database.read() as connection:
            conditions = _chosen(connection, tag, sought, states, guide=guide)
            if before_id is not None:
                conditions.append(documents.c.id < before_id)
            query = select(documents).where(*conditions).order_by(*order)
            return as_documents(connection, query.limit(limit).offset(offset))

    def totals(self, tag: str | None = None, sought: str = "") -> dict[DocumentState, tuple[int, int]]:
        """Return the number of a person's own documents in each state, and the total size of their files."""
        counted = select(documents.c.state, func.count().label("count"), func.sum(documents.c.size_bytes).label("size"))
        query = counted.where(*_chosen(self._database, tag, sought, guide=False)).group_by(documents.c.state)
        return {row["state"]: (row["count"], int(row["size"])) for row in self._rows(query)}

    def names(self, document_ids: Collection[int]) -> dict[int, str]:
        """Return the names of documents by id; deleted ones are left out."""
        named = documents.c.id.in_(document_ids), readable(self._database, documents.c.id)
        return self._pairs(select(documents.c.id, documents.c.name).where(*named))

    def library_names(self, library_ids: Collection[int]) -> dict[int, str]:
        """Return the names of readable libraries by id; deleted ones are left out."""
        query = select(libraries.c.id, libraries.c.name).where(libraries.c.id.in_(library_ids))
        if (person := person_of(self._database)) is not None:
            query = query.where(libraries.c.id.in_(libraries_of(person)))
        return self._pairs(query)

    def find(self, name_contains: str, scope: Scope, limit: int) -> tuple[list[Document], int]:
        """Return up to ``limit`` documents whose name contains a text, newest first, and the total number.

        ASCII case is ignored. The guide and newer versions that aren't ready yet are left out.
        """
        conditions: list[ColumnElement[bool]] = [documents.c.replaces.is_(None), OF_A_PERSON]
        if name_contains:
            conditions.append(documents.c.name.icontains(name_contains, autoescape=True))
        with self._database.read() as connection:
            conditions.append(in_scope(connection, documents.c.id, scope))
            query = select(documents).where(*conditions).order_by(documents.c.id.desc()).limit(limit)
            total = connection.execute(select(func.count()).select_from(documents).where(*conditions)).scalar_one()
            return as_documents(connection, query), total

    def guide(self) -> list[int]:
        """Return the ids of the guide's pages, which are no documents of a person."""
        return self._values(select(documents.c.id).where(~OF_A_PERSON, readable(self._database, documents.c.id)))

    def tags(self) -> dict[str, int]:
        """Return every tag with its number of documents, in alphabetical order."""
        own = readable(self._database, document_tags.c.document_id)
        counted = select(document_tags.c.tag, func.count()).where(own).group_by(document_tags.c.tag)
        return self._pairs(counted.order_by("tag"))


def _chosen(
    bound: Bound, tag: str | None, sought: str, states: Collection[DocumentState] = (), *, guide: bool
) -> list[ColumnElement[bool]]:
    scope = EVERYTHING if tag is None else Scope(tags=(tag,))
    conditions = [in_scope(bound, documents.c.id, scope), named_or_tagged(bound, sought)]
    if not guide:
        conditions.append(OF_A_PERSON)
    if states:
        conditions.append(documents.c.state.in_(states))
    return conditions
