"""Documents: adding, changing, replacing and deleting them.

Lists are in rows.py, processing states in progress.py, text and chunks in chunks.py, vectors in embeddings.py.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Select, delete, or_, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import UNSET, Document, DocumentState, NewDocument, Scope, Unset, errors
from rag_assistant.records.documents import ExtractedText, dated
from rag_assistant.storage.accounts.usage import bytes_of
from rag_assistant.storage.database import insert_row, lock, set_values
from rag_assistant.storage.documents.progress import DocumentProgress, give_up
from rag_assistant.storage.documents.rows import (
    add_tags,
    as_documents,
    content_key,
    drop_document,
    drop_pending_versions,
    load_document,
    name_key,
    row_of,
    row_to_change,
)
from rag_assistant.storage.ownership import in_readable_library, library_for_new, readable, writable
from rag_assistant.storage.tables import (
    deleted_files,
    document_tags,
    document_texts,
    documents,
    former_ids,
    libraries,
    now,
    scanned_pages,
)

GIVEN_UP: tuple[DocumentState, ...] = ("failed", "cancelled")
_CURRENT = documents.c.replaces.is_(None), documents.c.deleted_at.is_(None)
COPIED = ("name", "media_type", "size_bytes", "sha256", "file", "origin")


class DocumentStore(DocumentProgress):
    """Stores documents. What is deleted here is out of every answer at once, whatever an index still holds."""

    def add(self, new: NewDocument, max_bytes: int | None = None) -> tuple[Document, bool]:
        """Store a new document as ``queued``; return it and True, or the one with the same content and False.

        An existing one gets the new tags, and is queued again if it failed or was cancelled. It doesn't get the origin:
        an uploaded file stays when its copy in a folder is deleted. A newer version replaces pending versions of the
        same document. Raises DocumentNotFound, SameContent if another document has the content of a newer version, and
        StorageLimitReached if the files in the owner's libraries would exceed ``max_bytes``.
        """
        try:
            return self._add(new, max_bytes)
        except IntegrityError:  # Somebody else added the same content at the same moment.
            return self._add(new, max_bytes)

    def _add(self, new: NewDocument, max_bytes: int | None) -> tuple[Document, bool]:
        with self._database.write(adds=True) as connection:
            replaces = new.replaces
            if replaces is not None:  # A pending version stands for what it replaces.
                replaces = row_to_change(connection, replaces)["replaces"] or replaces
            if replaces is None:
                library_id = library_for_new(connection, new.library_id)
            else:  # A newer version stays in its document's library.
                library_id = row_of(connection, replaces)["library_id"]
            key = content_key(library_id, new.sha256)
            same = connection.execute(select(documents).where(documents.c.content_key == key)).mappings().first()
            if same is not None and replaces not in (None, same["id"], same["replaces"]):
                raise errors.SameContent(same["id"], replaces)
            if replaces is not None:
                drop_pending_versions(connection, replaces, but=same["id"] if same is not None else 0)
            if same is not None:
                if same["state"] in GIVEN_UP and same["owner"] == self._owner:
                    replaces = None if replaces == same["id"] else replaces
                    queued = {"state": "queued", "worker": None, "reason": None, "replaces": replaces}
                    set_values(connection, documents, same["id"], queued)
                add_tags(connection, same["id"], new.tags)
                return load_document(connection, same["id"]), False
            if max_bytes is not None:  # Of the library's owner; concurrent additions wait.
                owner = connection.execute(select(libraries.c.person_id).where(libraries.c.id == library_id)).scalar()
                lock(connection, f"files of {owner}")
                if bytes_of(connection, owner) + new.size_bytes > max_bytes:
                    raise errors.StorageLimitReached(f"{new.size_bytes / 1e6:.1f}", f"{max_bytes / 1e6:.0f}")
            values = {name: getattr(new, name) for name in COPIED} | {
                "name_key": name_key(new.name),
                "content_key": key,
                "library_id": library_id,
                "owner": self._owner,
                "state": "queued",
                "chunks": 0,
                "embedded": 0,
                "created_at": now(),
                "replaces": replaces,
                **dated({"added": now().date().isoformat()}, {"file": new.modified}),
            }
            document_id = insert_row(connection, documents, values)
            add_tags(connection, document_id, new.tags)
            return load_document(connection, document_id), True

    def change(
        self,
        document_id: int,
        *,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        origin: str | None = None,
        date: str | Unset | None = UNSET,
    ) -> Document:
        """Change a document's name, tags or origin; ``None`` leaves one unchanged. Raises DocumentNotFound.

        ``date`` is a person's correction; with ``None`` there is none anymore.
        """
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            new = (("name", name), ("origin", origin))
            changed: dict[str, Any] = {key: value for key, value in new if value is not None}
            if name is not None:
                changed["name_key"] = name_key(name)
            if not isinstance(date, Unset) and date != row["date"]:
                changed |= dated(row["dates"], {"person": date})
            set_values(connection, documents, document_id, changed)
            if tags is not None:
                connection.execute(delete(document_tags).where(document_tags.c.document_id == document_id))
                add_tags(connection, document_id, tags)
            return load_document(connection, document_id)

    def move(self, document_id: int, library_id: int) -> Document:
        """Move a document and its versions. Raises DocumentNotFound, LibraryNotFound, LibraryReadOnly, SameContent."""
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            library_for_new(connection, library_id)
            for one in connection.execute(_with_versions(document_id)).mappings().all():
                key = content_key(library_id, one["sha256"])
                there = select(documents.c.id).where(documents.c.content_key == key, documents.c.id != one["id"])
                same = connection.execute(there).scalar()
                if same is not None:
                    raise errors.SameContent(same, row["id"])
                set_values(connection, documents, one["id"], {"library_id": library_id, "content_key": key})
            return load_document(connection, document_id)

    def get(self, document_id: int) -> Document:
        """Return one document, also by the id it had as a newer version. Raises DocumentNotFound."""
        became = select(former_ids.c.document_id).where(former_ids.c.id == document_id)
        with self._database.read() as connection:
            current = connection.execute(became.where(readable(connection, former_ids.c.document_id))).scalar()
            return load_document(connection, current or document_id)

    def refuse_read_only(self, document_ids: Iterable[int]) -> None:
        """Raise DocumentNotFound or LibraryReadOnly unless all documents may be changed."""
        with self._database.read() as connection:
            for document_id in document_ids:
                row_to_change(connection, document_id)

    def missing(self, document_ids: Collection[int]) -> list[int]:
        """Return the ids that belong to no document."""
        there = self.names(document_ids) if document_ids else {}
        return [document_id for document_id in document_ids if document_id not in there]

    def present(self, scope: Scope) -> Scope:
        """Return a scope without documents that are gone."""
        return replace(scope, document_ids=tuple(self.names(scope.document_ids)))

    def check_scope(self, scope: Scope) -> None:
        """Raise DocumentNotFound, LibraryNotFound or InvalidRequest if a scope names what isn't there, or no time."""
        if scope.after and scope.before and scope.after[: len(scope.before)] > scope.before[: len(scope.after)]:
            raise errors.InvalidRequest(f"after is {scope.after}, which is later than before, {scope.before}.")
        for document_id in self.missing(scope.document_ids):
            raise errors.DocumentNotFound(document_id)
        for library_id in scope.library_ids:
            if library_id not in self.library_names(scope.library_ids):
                raise errors.LibraryNotFound(library_id)
        tags = self.tags() if scope.tags else {}
        for tag in scope.tags:
            if tag not in tags:
                there = f"Available: {', '.join(tags)}." if tags else "No document has any tags."
                raise errors.InvalidRequest(f'No document has the tag "{tag}". {there}')

    def with_file(self, document_id: int) -> tuple[Document, str]:
        """Return a document and the name of its file, both of one version. Raises DocumentNotFound."""
        with self._database.read() as connection:
            file = str(row_of(connection, document_id)["file"])  # First: it keeps a newer version out.
            return load_document(connection, document_id), file

    def ids_by_sha256(self) -> dict[str, int]:
        """Return the ids of all documents by the hash of their content."""
        own = readable(self._database, documents.c.id)
        return self._pairs(select(documents.c.sha256, documents.c.id).where(own))

    def known_files(self) -> set[str]:
        """Return the names of all uploaded files that belong to a document."""
        return set(self._values(select(documents.c.file)))

    def by_origin(self) -> dict[str, Document]:
        """Return the documents that were read from files on this machine, by path."""
        query = select(documents).where(documents.c.origin.is_not(None), *_CURRENT)
        with self._database.read() as connection:
            return {document.origin or "": document for document in as_documents(connection, query)}

    def of_origin(self, origin: str) -> Document | None:
        """Return the changeable document with this origin, ``None`` if there is none."""
        query = select(documents).where(documents.c.origin == origin, *_CURRENT)
        with self._database.read() as connection:
            matches = as_documents(connection, query.where(writable(connection)).order_by(documents.c.id).limit(1))
            return matches[0] if matches else None

    def text(self, document_id: int) -> ExtractedText:
        """Return a document's text, empty until it has been read. Raises DocumentNotFound."""
        with self._database.read() as connection:
            row = row_of(connection, document_id)
            own = document_texts.c.document_id == document_id
            body = connection.execute(select(document_texts).where(own)).first()
            pages = tuple(row["page_starts"] or ())
            return ExtractedText(body.text if body else "", row["media_type"], pages, bool(body and body.markdown))

    def pages_to_see(self, document_ids: Collection[int], *, scans: bool = False) -> set[tuple[int, int]]:
        """Return which pages of readable documents have a figure, or with ``scans`` no text: document and number."""
        with self._database.read() as connection:
            these = documents.c.id.in_(document_ids), readable(connection, documents.c.id)
            noted = connection.execute(select(documents.c.id, documents.c.figures).where(*these)).all()
            own = scanned_pages.c.document_id.in_([row.id for row in noted] if scans else ())
            scanned = connection.execute(select(scanned_pages.c.document_id, scanned_pages.c.page).where(own)).all()
        return {(row.id, page) for row in noted for page in row.figures or ()} | {(row[0], row[1]) for row in scanned}

    def trash(self, document_id: int) -> None:
        """Move a document to the trash: nothing finds it until ``restore``, which keeps its embeddings.

        Ongoing work on it ends; pending newer versions are deleted. Raises DocumentNotFound, LibraryReadOnly.
        """
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            if row["replaces"] is not None:
                drop_document(connection, row)
                return
            drop_pending_versions(connection, document_id)
            give_up(connection, row)
            # The same content may be added again meanwhile.
            values = {"deleted_at": now(), "content_key": f"deleted {document_id}"}
            set_values(connection, documents, document_id, values)

    def restore(self, document_id: int) -> Document:
        """Restore a document from the trash. Raises DocumentNotFound, LibraryReadOnly, SameContent."""
        with self._database.write() as connection:
            row = row_to_change(connection, document_id, in_trash=True)
            key = content_key(row["library_id"], row["sha256"])
            same = connection.execute(select(documents.c.id).where(documents.c.content_key == key)).scalar()
            if same is not None:
                raise errors.SameContent(same, document_id)
            set_values(connection, documents, document_id, {"deleted_at": None, "content_key": key})
            return load_document(connection, document_id)

    def trashed(self, limit: int) -> list[Document]:
        """Return up to ``limit`` restorable documents in the trash, most recently deleted first."""
        query = select(documents).order_by(documents.c.deleted_at.desc(), documents.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            own = in_readable_library(connection, in_trash=True), writable(connection)
            return as_documents(connection, query.where(*own))

    def trashed_before(self, moment: datetime) -> list[int]:
        """Return the ids of documents moved to the trash before a moment."""
        return self._values(select(documents.c.id).where(documents.c.deleted_at < moment))

    def delete(self, document_id: int, *, in_trash: bool = False) -> None:
        """Delete a document, its pending newer versions and everything derived from it, from the file too.

        Their uploaded files are marked for deletion. Raises DocumentNotFound.
        """
        with self._database.write() as connection:
            row_to_change(connection, document_id, in_trash=in_trash)
            for row in connection.execute(_with_versions(document_id)).mappings().all():
                drop_document(connection, row)
        self._database.forget_deleted()

    def files_in(self, store: str) -> list[tuple[int, str, str, str]]:
        """Return id, name, sha256 and file of each document whose file is in a store, including the trash."""
        columns = documents.c.id, documents.c.name, documents.c.sha256, documents.c.file
        query = select(*columns).where(documents.c.owner == store).order_by(documents.c.id)
        return [(row["id"], row["name"], row["sha256"], row["file"]) for row in self._rows(query)]

    def note_moved(self, file: str, source: str, target: str) -> None:
        """Record that a file is in another store now."""
        one = documents.c.file == file, documents.c.owner == source
        self._commit(update(documents).where(*one).values(owner=target))

    def files_to_delete(self) -> list[str]:
        """Return the files of deleted documents in this process's store."""
        return self._values(select(deleted_files.c.file).where(deleted_files.c.owner == self._owner))

    def forget_file(self, file: str) -> None:
        """Record that a file was deleted."""
        self._commit(delete(deleted_files).where(deleted_files.c.file == file))


def _with_versions(document_id: int) -> Select[Any]:
    """Return the query for a document and its pending newer versions."""
    return select(documents).where(or_(documents.c.id == document_id, documents.c.replaces == document_id))
