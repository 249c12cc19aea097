"""The processing of documents: queued, being read or embedded, ready, failed; and which process works on them."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, case, false, func, select, update

from rag_assistant.records import Document, DocumentState
from rag_assistant.storage.database import Database, set_values
from rag_assistant.storage.documents.chunks import drop_chunks
from rag_assistant.storage.documents.rows import (
    UNFINISHED,
    DocumentLists,
    drop_scans,
    give_up_scans,
    is_whole,
    load_document,
    row_to_change,
    take_its_place,
)
from rag_assistant.storage.processes import is_nobodys
from rag_assistant.storage.tables import document_texts, documents, libraries, processes

RECOGNITION_CANCELLED = "Text recognition was cancelled: what stands on scanned pages is not found."

OWNER = select(libraries.c.person_id).where(libraries.c.id == documents.c.library_id).scalar_subquery()


class DocumentProgress(DocumentLists):
    """Stores how far each document is, and which process works on it.

    ``owner`` names where this process keeps files: it reads only those. ``worker`` names this process: nobody else
    works on its documents while it lives.
    """

    def __init__(self, database: Database, owner: str, worker: str = "") -> None:
        super().__init__(database)
        self._owner = owner
        self.worker = worker

    def take(self, document_id: int) -> Document | None:
        """Claim a document for reading, now in the state ``reading``.

        ``None`` if it isn't to be read, its file is elsewhere, or another process works on it.
        """
        with self._database.write() as connection:
            to_read = documents.c.state.in_(("queued", "reading")), documents.c.owner == self._owner
            own = update(documents).where(documents.c.id == document_id, *to_read, self._is_free)
            taken = connection.execute(own.values(state="reading", worker=self.worker, reason=None, attempts=0))
            return load_document(connection, document_id) if taken.rowcount else None

    def take_in(self, document_id: int, *states: DocumentState) -> bool:
        """Claim a document if it is in one of some states and nobody else works on it; return whether it was."""
        free = documents.c.id == document_id, documents.c.state.in_(states), self._is_free
        return bool(self._commit(update(documents).where(*free).values(worker=self.worker)))

    def take_up_unfinished(
        self, *, recognises: bool = False, of_ours: bool = True, held: bool = False, max_taken: int | None = None
    ) -> tuple[list[int], list[int], list[int]]:
        """Claim unfinished documents of dead processes; return those to read, to embed and to recognise.

        These are what a process that died worked on or, where its whole installation is gone or others have its files,
        had queued; embedding needs no file. ``of_ours``: also what waits for this installation, whose queue is empty at
        a start; if it ``recognises`` text, also those with scanned pages left. ``held``: also what this process holds
        and isn't reading, since its queue was lost. It claims at most ``max_taken`` of each kind at once and leaves the
        rest to others.
        """
        alive = select(processes.c.installation)
        forsaken = documents.c.worker.is_not(None) | documents.c.owner.not_in(alive)
        ours = documents.c.owner == self._owner
        wanted = forsaken & (ours | (documents.c.state == "embedding")) | (ours if of_ours else false())
        with self._database.write() as connection:
            if of_ours and recognises:
                lacking = documents.c.scanned_pages > documents.c.recognised_pages
                finished = documents.c.state.in_(("ready", "failed")) & documents.c.deleted_at.is_(None)
                unread = update(documents).where(ours, finished, lacking)
                connection.execute(unread.values(state="recognising", worker=None))
            free = is_nobodys(documents.c.worker)
            if held:
                free |= (documents.c.worker == self.worker) & (documents.c.state != "reading")
            left: ColumnElement[bool] = documents.c.state.in_(UNFINISHED) & free & wanted
            if max_taken is not None:
                left = documents.c.id.in_(self._shared_out(connection, left, max_taken))
            state = case((documents.c.state == "reading", "queued"), else_=documents.c.state)
            taken = update(documents).where(left).values(worker=self.worker, state=state)
            rows = connection.execute(taken.returning(documents.c.id, documents.c.state)).all()
        ids = {of: sorted(row.id for row in rows if row.state == of) for of in UNFINISHED}
        return ids["queued"], ids["embedding"], ids["recognising"]

    def _shared_out(self, connection: Connection, left: ColumnElement[bool], max_taken: int) -> list[int]:
        """Return the documents this process may claim, oldest first."""
        if connection.execute(select(documents.c.id).where(left).limit(1)).first() is None:
            return []
        due: list[int] = []
        for states in (("queued", "reading"), ("embedding",), ("recognising",)):
            # Documents waiting for a retry don't hold up others.
            held = documents.c.worker == self.worker, documents.c.state.in_(states), documents.c.attempts == 0
            room = max_taken - connection.execute(select(func.count()).select_from(documents).where(*held)).scalar_one()
            # People in turn, those whose documents are worked on last; else by chance, so that nobody always is.
            nth = func.row_number().over(partition_by=OWNER, order_by=[left, documents.c.id])
            turns = select(documents.c.id, nth.label("nth")).where(documents.c.state.in_(states)).subquery()
            some = select(documents.c.id).where(left, documents.c.id == turns.c.id).order_by(turns.c.nth, func.random())
            due += connection.execute(
                some.limit(max(0, room)).with_for_update(of=documents, skip_locked=True)
            ).scalars()
        return due

    def owner_of(self, document_id: int) -> int | None:
        """Return whose library a document is in; ``None`` if nobody owns it."""
        return next(iter(self._values(select(OWNER).where(documents.c.id == document_id))), None)

    @property
    def _is_free(self) -> ColumnElement[bool]:
        return (documents.c.worker == self.worker) | is_nobodys(documents.c.worker)

    def in_store(self) -> list[int]:
        """Return the ids of documents whose files are in our store, without the trash."""
        own = documents.c.owner == self._owner, documents.c.deleted_at.is_(None)
        return self._values(select(documents.c.id).where(*own).order_by(documents.c.id))

    def is_ours_in(self, state: DocumentState, document_id: int) -> bool:
        """Return whether a document is in a state and claimed by this process."""
        return self._any(documents.c.id == document_id, documents.c.state == state, documents.c.worker == self.worker)

    def any_unfinished(self) -> bool:
        """Return whether an unclaimed document of ours is unfinished."""
        return self._any(documents.c.state.in_(UNFINISHED), documents.c.owner == self._owner, self._is_free)

    def any_queued(self) -> bool:
        """Return whether a document of ours is waiting to be read."""
        return self._any(documents.c.state == "queued", documents.c.owner == self._owner)

    def _any(self, *conditions: ColumnElement[bool]) -> bool:
        return bool(self._values(select(documents.c.id).where(*conditions).limit(1)))

    def count_attempt(self, document_id: int) -> int | None:
        """Count a failed attempt to embed a document; return their number since it was read, ``None`` if it is gone."""
        counted = update(documents).where(documents.c.id == document_id).values(attempts=documents.c.attempts + 1)
        with self._database.write() as connection:
            return connection.execute(counted.returning(documents.c.attempts)).scalar()

    def say(self, document_id: int, reason: str) -> None:
        """Set a message about a document in progress, such as what is being retried."""
        worked_on = documents.c.id == document_id, documents.c.state.in_(UNFINISHED)
        self._commit(update(documents).where(*worked_on).values(reason=reason))

    def queue_again(self, document_id: int) -> Document:
        """Queue an idle document of ours again. Raises DocumentNotFound."""
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            if row["state"] not in UNFINISHED and row["owner"] == self._owner:
                set_values(connection, documents, document_id, {"state": "queued", "worker": None, "reason": None})
            return load_document(connection, document_id)

    def cancel(self, document_id: int) -> Document:
        """Cancel work on a document, and discard what was read of it. Raises DocumentNotFound.

        An idle one stays as it is; one that was ready and is read again, or whose scanned pages are being recognised,
        becomes ready.
        """
        with self._database.write() as connection:
            give_up(connection, row_to_change(connection, document_id))
            return load_document(connection, document_id)

    def finish(self, document_id: int, embedder: str, *, recognises: bool = False) -> bool:
        """Mark a document as ready if ``embedder`` has embedded every chunk; otherwise return False.

        If scanned pages are left, and this installation has the file and ``recognises`` text, that comes next. A newer
        version replaces the older one in the same step.
        """
        with self._database.write() as connection:
            own = select(documents).where(documents.c.id == document_id).with_for_update()
            row = connection.execute(own).mappings().first()
            # It may have failed after too many attempts and be embedded now.
            if row is None or row["state"] not in ("embedding", "failed") or not is_whole(connection, row, embedder):
                return False
            recognises = recognises and row["owner"] == self._owner
            if recognises and row["scanned_pages"] > row["recognised_pages"]:
                following = {"state": "recognising", "worker": self.worker, "reason": None}
                set_values(connection, documents, document_id, following | {"embedded": row["chunks"]})
                return False
            warning = select(document_texts.c.warning).where(document_texts.c.document_id == document_id)
            finished = {
                "state": "ready",
                "embedded": row["chunks"],
                "reason": connection.execute(warning).scalar(),
                "replaces": None,
            }
            take_its_place(connection, row, finished)
            return True

    def fail(self, document_id: int, reason: str, *, also_ready: bool = False) -> None:
        """Mark a document in progress as failed, or with ``also_ready`` one that can't be embedded, with a reason."""
        states = (*UNFINISHED, "ready") if also_ready else UNFINISHED
        worked_on = documents.c.id == document_id, documents.c.state.in_(states)
        self._commit(update(documents).where(*worked_on).values(state="failed", reason=reason))


def give_up(connection: Connection, row: RowMapping) -> None:
    """Stop working on a document; see ``cancel``."""
    values: dict[str, Any] = {}
    if row["state"] == "recognising" and row["chunks"] and row["replaces"] is None:
        give_up_scans(connection, row["id"], RECOGNITION_CANCELLED)
        values = {"state": "ready", "reason": RECOGNITION_CANCELLED}
    elif row["state"] in ("queued", "reading") and 0 < row["chunks"] == row["embedded"]:
        values = {"state": "ready", "reason": None}
    elif row["state"] in UNFINISHED:
        drop_chunks(connection, row["id"])
        drop_scans(connection, row["id"])
        forgotten = dict.fromkeys(("chunks", "embedded", "scanned_pages", "recognised_pages"), 0)
        values = {"state": "cancelled", "reason": None, **forgotten}
    set_values(connection, documents, row["id"], values)
