"""Documents: which there are, how far each has come, and what takes another's place.

How they are listed is in lists.py; their text and chunks are in chunks.py, the vectors of the chunks in embeddings.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, RowMapping, case, delete, false, insert, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.document_records import Document, DocumentState, ExtractedText, NewDocument
from rag_assistant.errors import LibraryNotFound, SameContent
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import drop_chunks
from rag_assistant.storage.documents.lists import DocumentLists
from rag_assistant.storage.documents.rows import (
    add_tags,
    as_documents,
    content_key,
    document_to_replace,
    drop_pending_versions,
    is_whole,
    load_document,
    name_key,
    row_of,
    row_to_change,
    set_values,
    take_its_place,
)
from rag_assistant.storage.documents.scans import drop_scans, give_up_scans
from rag_assistant.storage.leases import is_nobodys
from rag_assistant.storage.ownership import library_for_new, readable
from rag_assistant.storage.tables import document_tags, document_texts, documents, now, processes

UNFINISHED: tuple[DocumentState, ...] = ("queued", "reading", "recognising", "embedding")
RECOGNITION_CANCELLED = "Text recognition was cancelled: what stands on scanned pages is not found."
GIVEN_UP: tuple[DocumentState, ...] = ("failed", "cancelled")


class DocumentStore(DocumentLists):
    """Keeps documents. What is deleted here is gone from every answer at once, whatever an index still holds.

    ``owner`` names this installation: it reads the files that lie in its own folder and no others. ``worker`` names
    this process: what it works on, nobody else works on while it lives.
    """

    def __init__(self, database: Database, owner: str, worker: str = "") -> None:
        super().__init__(database)
        self._owner = owner
        self.worker = worker

    def add(self, new: NewDocument) -> tuple[Document, bool]:
        """Keep a new document as ``queued``; return it and True, or the one with the same content and False.

        One with the same content gets the new tags, too; if it failed or was cancelled, it is queued again. It does not
        get the origin: what was uploaded does not go when a copy of it in a folder goes. A newer version takes the
        place of those of the same document that are on their way. Raises DocumentNotFound, and SameContent if another
        document has the content of a newer version.
        """
        try:
            return self._add(new)
        except IntegrityError:  # Somebody else added the same content at the same moment.
            return self._add(new)

    def _add(self, new: NewDocument) -> tuple[Document, bool]:
        with self._database.write() as connection:
            replaces = document_to_replace(connection, new.replaces)
            library_id = self._library_of(connection, new, replaces)
            key = content_key(library_id, new.sha256)
            same = connection.execute(select(documents).where(documents.c.content_key == key)).mappings().first()
            if same is not None and replaces not in (None, same["id"], same["replaces"]):
                raise SameContent(same["id"], replaces)
            drop_pending_versions(connection, replaces, but=same["id"] if same is not None else None)
            if same is not None:
                self._take_up_same(connection, same, new, replaces)
                return load_document(connection, same["id"]), False
            document_id = connection.execute(
                insert(documents)
                .values(
                    name=new.name,
                    name_key=name_key(new.name),
                    media_type=new.media_type,
                    size_bytes=new.size_bytes,
                    content_key=key,
                    sha256=new.sha256,
                    library_id=library_id,
                    owner=self._owner,
                    file=new.file,
                    state="queued",
                    chunks=0,
                    embedded=0,
                    created_at=now(),
                    origin=new.origin,
                    replaces=replaces,
                )
                .returning(documents.c.id)
            ).scalar_one()
            add_tags(connection, document_id, new.tags)
            return load_document(connection, document_id), True

    @staticmethod
    def _library_of(connection: Connection, new: NewDocument, replaces: int | None) -> int | None:
        """Return the library of a new document; a newer version stays in that of the older one."""
        if replaces is not None:
            found: int | None = row_of(connection, replaces)["library_id"]
            return found
        library_id = library_for_new(connection, new.library_id)
        if library_id is None:
            raise LibraryNotFound(new.library_id or 0)
        return library_id

    def _take_up_same(self, connection: Connection, same: RowMapping, new: NewDocument, replaces: int | None) -> None:
        if same["state"] in GIVEN_UP and same["owner"] == self._owner:
            replaces = None if replaces == same["id"] else replaces
            set_values(connection, same["id"], state="queued", worker=None, reason=None, replaces=replaces)
        add_tags(connection, same["id"], new.tags)

    def change(
        self, document_id: int, *, name: str | None = None, tags: Sequence[str] | None = None, origin: str | None = None
    ) -> Document:
        """Give a document another name, other tags or another origin; ``None`` leaves it. Raises DocumentNotFound."""
        with self._database.write() as connection:
            row_to_change(connection, document_id)
            changed = {key: value for key, value in (("name", name), ("origin", origin)) if value is not None}
            if name is not None:
                changed["name_key"] = name_key(name)
            if changed:
                set_values(connection, document_id, **changed)
            if tags is not None:
                connection.execute(delete(document_tags).where(document_tags.c.document_id == document_id))
                add_tags(connection, document_id, tags)
            return load_document(connection, document_id)

    def move(self, document_id: int, library_id: int) -> Document:
        """Put a document into another library. Raises DocumentNotFound, LibraryNotFound, LibraryReadOnly, SameContent.

        Newer versions of it that are on their way go along.
        """
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            if library_for_new(connection, library_id) is None:
                raise LibraryNotFound(library_id)
            both = documents.c.id == document_id, documents.c.replaces == document_id
            for one in connection.execute(select(documents).where(both[0] | both[1])).mappings().all():
                key = content_key(library_id, one["sha256"])
                there = select(documents.c.id).where(documents.c.content_key == key, documents.c.id != one["id"])
                same = connection.execute(there).scalar()
                if same is not None:
                    raise SameContent(same, row["id"])
                set_values(connection, one["id"], library_id=library_id, content_key=key)
            return load_document(connection, document_id)

    def get(self, document_id: int) -> Document:
        """Return one document. Raises DocumentNotFound."""
        with self._database.read() as connection:
            return load_document(connection, document_id)

    def refuse_read_only(self, document_ids: Iterable[int]) -> None:
        """Refuse documents that may not be changed. Raises DocumentNotFound, LibraryReadOnly."""
        with self._database.read() as connection:
            for document_id in document_ids:
                row_to_change(connection, document_id)

    def missing(self, document_ids: Iterable[int]) -> list[int]:
        """Return those of the ids that name no document."""
        named_ids = list(document_ids)
        if not named_ids:
            return []
        with self._database.read() as connection:
            there = documents.c.id.in_(named_ids), readable(connection, documents.c.id)
            found = set(connection.execute(select(documents.c.id).where(*there)).scalars())
        return [document_id for document_id in named_ids if document_id not in found]

    def file_of(self, document_id: int) -> str:
        """Return the name of the uploaded file. Raises DocumentNotFound."""
        with self._database.read() as connection:
            return str(row_of(connection, document_id)["file"])

    def ids_by_sha256(self) -> dict[str, int]:
        """Return the ids of all documents by what their files hold."""
        with self._database.read() as connection:
            query = select(documents.c.sha256, documents.c.id).where(readable(connection, documents.c.id))
            return {row.sha256: row.id for row in connection.execute(query)}

    def known_files(self) -> set[str]:
        """Return the names of all uploaded files that belong to a document."""
        with self._database.read() as connection:
            return set(connection.execute(select(documents.c.file)).scalars())

    def by_origin(self) -> dict[str, Document]:
        """Return the documents that were read from files of this machine, by the file's path."""
        query = select(documents).where(documents.c.origin.is_not(None), documents.c.replaces.is_(None))
        with self._database.read() as connection:
            return {document.origin or "": document for document in as_documents(connection, query)}

    def text(self, document_id: int) -> ExtractedText:
        """Return a document's text, empty while it is not read. Raises DocumentNotFound."""
        with self._database.read() as connection:
            row = row_of(connection, document_id)
            found = connection.execute(
                select(document_texts.c.text, document_texts.c.markdown).where(
                    document_texts.c.document_id == document_id
                )
            ).first()
            pages = tuple(row["page_starts"] or ())
            return ExtractedText(found.text if found else "", row["media_type"], pages, bool(found and found.markdown))

    # --- how far it has come

    def take(self, document_id: int) -> Document | None:
        """Return a document that is to be read, now in the state ``reading`` and ours to work on.

        ``None`` if it is not, if its file lies elsewhere, or if another process works on it.
        """
        with self._database.write() as connection:
            to_read = documents.c.state.in_(("queued", "reading")), documents.c.owner == self._owner
            taken = connection.execute(
                update(documents)
                .where(documents.c.id == document_id, *to_read, self._is_free)
                .values(state="reading", worker=self.worker, reason=None, attempts=0)
            )
            return load_document(connection, document_id) if taken.rowcount else None

    def take_in(self, state: DocumentState, document_id: int) -> bool:
        """Tell whether a document is in a state, and nobody else works on it; then it is ours to work on."""
        with self._database.write() as connection:
            free = documents.c.id == document_id, documents.c.state == state, self._is_free
            return bool(connection.execute(update(documents).where(*free).values(worker=self.worker)).rowcount)

    def take_up_unfinished(
        self, *, recognises: bool = False, of_ours: bool = True
    ) -> tuple[list[int], list[int], list[int]]:
        """Take what the death of a process left half done; return which documents to read, embed and recognise.

        Those are what a process that died worked on or, where the whole installation is gone, had before it: to embed
        them needs no file. ``of_ours``: also what waits for this installation, whose queue is empty at a start; if it
        ``recognises`` any, then those with scanned pages that were not recognised yet, too.
        """
        alive = select(processes.c.installation)
        forsaken = documents.c.worker.is_not(None) | documents.c.owner.not_in(alive)
        ours = documents.c.owner == self._owner
        wanted = forsaken & (ours | (documents.c.state == "embedding")) | (ours if of_ours else false())
        with self._database.write() as connection:
            if of_ours and recognises:
                lacking = documents.c.scanned_pages > documents.c.recognised_pages
                over = documents.c.state.in_(("ready", "failed"))
                unread = update(documents).where(ours, over, lacking)
                connection.execute(unread.values(state="recognising", worker=None))
            left = documents.c.state.in_(UNFINISHED), is_nobodys(documents.c.worker), wanted
            state = case((documents.c.state == "reading", "queued"), else_=documents.c.state)
            taken = update(documents).where(*left).values(worker=self.worker, state=state)
            rows = connection.execute(taken.returning(documents.c.id, documents.c.state)).all()
        found = {of: sorted(row.id for row in rows if row.state == of) for of in UNFINISHED}
        return found["queued"], found["embedding"], found["recognising"]

    @property
    def _is_free(self) -> ColumnElement[bool]:
        return (documents.c.worker == self.worker) | is_nobodys(documents.c.worker)

    def ours(self) -> list[int]:
        """Return the ids of all documents whose files lie with this installation."""
        with self._database.read() as connection:
            query = select(documents.c.id).where(documents.c.owner == self._owner).order_by(documents.c.id)
            return list(connection.execute(query).scalars())

    def is_ours_in(self, state: DocumentState, document_id: int) -> bool:
        """Tell whether a document exists, is in a state and is ours to work on."""
        ours = documents.c.id == document_id, documents.c.state == state, documents.c.worker == self.worker
        with self._database.read() as connection:
            return connection.execute(select(documents.c.id).where(*ours)).first() is not None

    def any_queued(self) -> bool:
        """Tell whether a document of ours waits to be read."""
        waits = documents.c.state == "queued", documents.c.owner == self._owner
        with self._database.read() as connection:
            return connection.execute(select(documents.c.id).where(*waits).limit(1)).first() is not None

    def count_attempt(self, document_id: int) -> int | None:
        """Return how often a document could not be embedded since it was read, this time included.

        ``None`` if it is not there any more.
        """
        with self._database.write() as connection:
            counted = (
                update(documents)
                .where(documents.c.id == document_id)
                .values(attempts=documents.c.attempts + 1)
                .returning(documents.c.attempts)
            )
            return connection.execute(counted).scalar()

    def say(self, document_id: int, reason: str) -> None:
        """Keep a sentence about a document that is being embedded, such as what is tried again."""
        with self._database.write() as connection:
            embedding = (documents.c.id == document_id, documents.c.state == "embedding")
            connection.execute(update(documents).where(*embedding).values(reason=reason))

    def queue_again(self, document_id: int) -> Document:
        """Queue a document of ours that is not being worked on once more. Raises DocumentNotFound."""
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            if row["state"] not in UNFINISHED and row["owner"] == self._owner:
                set_values(connection, document_id, state="queued", worker=None, reason=None)
            return load_document(connection, document_id)

    def cancel(self, document_id: int) -> Document:
        """Give up a document that is worked on, and forget what was read of it. Raises DocumentNotFound.

        One that is not worked on is left as it is; one that was ready and is to be read again is ready again, and one
        whose scanned pages are being recognised is ready with the rest.
        """
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            was_ready = row["state"] in ("queued", "reading") and 0 < row["chunks"] == row["embedded"]
            if row["state"] == "recognising" and row["chunks"] and row["replaces"] is None:
                give_up_scans(connection, document_id, RECOGNITION_CANCELLED)
                set_values(connection, document_id, state="ready", reason=RECOGNITION_CANCELLED)
            elif was_ready:
                set_values(connection, document_id, state="ready", reason=None)
            elif row["state"] in UNFINISHED:
                drop_chunks(connection, document_id)
                drop_scans(connection, document_id)
                forgotten = dict.fromkeys(("chunks", "embedded", "scanned_pages", "recognised_pages"), 0)
                set_values(connection, document_id, state="cancelled", reason=None, **forgotten)
            return load_document(connection, document_id)

    def finish(self, document_id: int, embedder: str, *, recognises: bool = False) -> list[str] | None:
        """Mark a document as ready, if every chunk of it is embedded by ``embedder``; else leave it and return None.

        Where scanned pages are to be recognised, and this installation has the file and ``recognises`` any, that comes
        next. A newer version takes the place of the older one in the same step. Return the names of the files that are
        not needed any more.
        """
        with self._database.write() as connection:
            own = select(documents).where(documents.c.id == document_id).with_for_update()
            row = connection.execute(own).mappings().first()
            # Failed is one that could not be embedded for too long, and now is after all.
            if row is None or row["state"] not in ("embedding", "failed") or not is_whole(connection, row, embedder):
                return None
            recognises = recognises and row["owner"] == self._owner
            if recognises and row["scanned_pages"] > row["recognised_pages"]:
                next_one = {"state": "recognising", "worker": self.worker}
                set_values(connection, document_id, embedded=row["chunks"], reason=None, **next_one)
                return None
            warning = select(document_texts.c.warning).where(document_texts.c.document_id == document_id)
            finished = {
                "state": "ready",
                "embedded": row["chunks"],
                "reason": connection.execute(warning).scalar(),
                "replaces": None,
            }
            return take_its_place(connection, row, finished)

    def fail(self, document_id: int, reason: str, *, also_ready: bool = False) -> None:
        """Mark a document that is worked on as failed, with the reason that a person reads.

        With ``also_ready`` one that was ready, too: a new embedding model cannot take it.
        """
        states = (*UNFINISHED, "ready") if also_ready else UNFINISHED
        with self._database.write() as connection:
            connection.execute(
                update(documents)
                .where(documents.c.id == document_id, documents.c.state.in_(states))
                .values(state="failed", reason=reason)
            )

    def delete(self, document_id: int) -> list[str]:
        """Delete a document with all that was made of it, newer versions on their way included.

        Return the names of the files that are not needed any more. Raises DocumentNotFound.
        """
        with self._database.write() as connection:
            row_to_change(connection, document_id)
            both = documents.c.id == document_id, documents.c.replaces == document_id
            rows = connection.execute(select(documents.c.id, documents.c.file).where(both[0] | both[1])).all()
            for row in rows:
                drop_chunks(connection, row.id)
                connection.execute(delete(documents).where(documents.c.id == row.id))
            return [row.file for row in rows]
