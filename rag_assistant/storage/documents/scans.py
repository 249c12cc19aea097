"""Scanned pages and their recognised text."""

from collections.abc import Collection

from msgspec.structs import astuple
from sqlalchemy import Connection, delete, func, select, update

from rag_assistant.records.documents import RecognisedPage, Word
from rag_assistant.storage.database import Store, insert_rows
from rag_assistant.storage.tables import documents, scanned_pages


class ScanStore(Store):
    """Stores the results of text recognition page by page, so that a restart continues where it stopped."""

    def add(self, document_id: int, pages: Collection[int]) -> dict[int, RecognisedPage]:
        """Record which pages of a document are scanned; return the results of an earlier reading.

        Pages that failed are tried again.
        """
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


def move_scans(connection: Connection, from_document: int, to_document: int) -> None:
    """Move scanned pages to another document."""
    drop_scans(connection, to_document)
    moved = update(scanned_pages).where(scanned_pages.c.document_id == from_document)
    connection.execute(moved.values(document_id=to_document))


def _count(connection: Connection, document_id: int) -> None:
    own = scanned_pages.c.document_id == document_id
    counted = select(func.count(), func.count(scanned_pages.c.lines)).where(own)
    scanned, recognised = connection.execute(counted).one()
    this = update(documents).where(documents.c.id == document_id)
    connection.execute(this.values(scanned_pages=scanned, recognised_pages=recognised))
