"""How far documents have come: queued, being read or embedded, ready, given up; and who works on them."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, case, false, func, select, update

from rag_assistant.records import Document, DocumentState
from rag_assistant.storage.database import Database, set_values
from rag_assistant.storage.documents.chunks import drop_chunks
from rag_assistant.storage.documents.rows import (
    UNFINISHED,
    DocumentLists,
    is_whole,
    load_document,
    row_to_change,
    take_its_place,
)
from rag_assistant.storage.documents.scans import drop_scans, give_up_scans
from rag_assistant.storage.leases import is_nobodys
from rag_assistant.storage.tables import document_texts, documents, processes

RECOGNITION_CANCELLED = "Text recognition was cancelled: what stands on scanned pages is not found."


class DocumentProgress(DocumentLists):
    """Keeps how far each document has come, and which process works on it.

    ``owner`` names where this process keeps files: it reads those that lie there and no others. ``worker`` names this
    process: what it works on, nobody else works on while it lives.
    """

    def __init__(self, database: Database, owner: str, worker: str = "") -> None:
        super().__init__(database)
        self._owner = owner
        self.worker = worker

    def take(self, document_id: int) -> Document | None:
        """Return a document that is to be read, now in the state ``reading`` and ours to work on.

        ``None`` if it is not, if its file lies elsewhere, or if another process works on it.
        """
        with self._database.write() as connection:
            to_read = documents.c.state.in_(("queued", "reading")), documents.c.owner == self._owner
            own = update(documents).where(documents.c.id == document_id, *to_read, self._is_free)
            taken = connection.execute(own.values(state="reading", worker=self.worker, reason=None, attempts=0))
            return load_document(connection, document_id) if taken.rowcount else None

    def take_in(self, document_id: int, *states: DocumentState) -> bool:
        """Tell whether a document is in one of some states, and nobody else works on it; then it is ours to work on."""
        free = documents.c.id == document_id, documents.c.state.in_(states), self._is_free
        return bool(self._commit(update(documents).where(*free).values(worker=self.worker)))

    def take_up_unfinished(
        self, *, recognises: bool = False, of_ours: bool = True, held: bool = False, max_taken: int | None = None
    ) -> tuple[list[int], list[int], list[int]]:
        """Take what the death of a process left half done; return which documents to read, embed and recognise.

        Those are what a process that died worked on or, where the whole installation is gone or others have its files,
        had before it; to embed them needs no file. ``of_ours``: also what waits for this installation, whose queue is
        empty at a start; if it ``recognises`` any, then those with scanned pages that were not recognised yet, too.
        ``held``: also what this process holds and is not reading, for its queue was lost. No more than ``max_taken`` of
        each kind are this process's at once: the rest is left to others.
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
        """Return which of the documents that are left are due to this process, the oldest first."""
        if connection.execute(select(documents.c.id).where(left).limit(1)).first() is None:
            return []
        due: list[int] = []
        for states in (("queued", "reading"), ("embedding",), ("recognising",)):
            # What waits for another attempt keeps nothing else waiting.
            held = documents.c.worker == self.worker, documents.c.state.in_(states), documents.c.attempts == 0
            room = max_taken - connection.execute(select(func.count()).select_from(documents).where(*held)).scalar_one()
            some = select(documents.c.id).where(left, documents.c.state.in_(states)).order_by(documents.c.id)
            due += connection.execute(some.limit(max(0, room)).with_for_update(skip_locked=True)).scalars()
        return due

    @property
    def _is_free(self) -> ColumnElement[bool]:
        return (documents.c.worker == self.worker) | is_nobodys(documents.c.worker)

    def in_store(self) -> list[int]:
        """Return the ids of the documents whose files lie in our store, without those in the trash."""
        own = documents.c.owner == self._owner, documents.c.deleted_at.is_(None)
        return self._values(select(documents.c.id).where(*own).order_by(documents.c.id))

    def is_ours_in(self, state: DocumentState, document_id: int) -> bool:
        """Tell whether a document exists, is in a state and is ours to work on."""
        return self._any(documents.c.id == document_id, documents.c.state == state, documents.c.worker == self.worker)

    def any_unfinished(self) -> bool:
        """Tell whether a document of ours that nobody else works on waits for anything."""
        return self._any(documents.c.state.in_(UNFINISHED), documents.c.owner == self._owner, self._is_free)

    def any_queued(self) -> bool:
        """Tell whether a document of ours waits to be read."""
        return self._any(documents.c.state == "queued", documents.c.owner == self._owner)

    def _any(self, *conditions: ColumnElement[bool]) -> bool:
        return bool(self._values(select(documents.c.id).where(*conditions).limit(1)))

    def count_attempt(self, document_id: int) -> int | None:
        """Return how often a document could not be embedded since it was read, this time included.

        ``None`` if it is not there any more.
        """
        counted = update(documents).where(documents.c.id == document_id).values(attempts=documents.c.attempts + 1)
        with self._database.write() as connection:
            return connection.execute(counted.returning(documents.c.attempts)).scalar()

    def say(self, document_id: int, reason: str) -> None:
        """Keep a sentence about a document that is being worked on, such as what is tried again."""
        worked_on = documents.c.id == document_id, documents.c.state.in_(UNFINISHED)
        self._commit(update(documents).where(*worked_on).values(reason=reason))

    def queue_again(self, document_id: int) -> Document:
        """Queue a document of ours that is not being worked on once more. Raises DocumentNotFound."""
        with self._database.write() as connection:
            row = row_to_change(connection, document_id)
            if row["state"] not in UNFINISHED and row["owner"] == self._owner:
                set_values(connection, documents, document_id, {"state": "queued", "worker": None, "reason": None})
            return load_document(connection, document_id)

    def cancel(self, document_id: int) -> Document:
        """Give up a document that is worked on, and forget what was read of it. Raises DocumentNotFound.

        One that is not worked on is left as it is; one that was ready and is to be read again is ready again, and one
        whose scanned pages are being recognised is ready with the rest.
        """
        with self._database.write() as connection:
            give_up(connection, row_to_change(connection, document_id))
            return load_document(connection, document_id)

    def finish(self, document_id: int, embedder: str, *, recognises: bool = False) -> bool:
        """Mark a document as ready, if every chunk of it is embedded by ``embedder``; else leave it and return False.

        Where scanned pages are to be recognised, and this installation has the file and ``recognises`` any, that comes
        next. A newer version takes the place of the older one in the same step.
        """
        with self._database.write() as connection:
            own = select(documents).where(documents.c.id == document_id).with_for_update()
            row = connection.execute(own).mappings().first()
            # Failed is one that could not be embedded for too long, and now is after all.
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
        """Mark a document that is worked on as failed, with the reason that a person reads.

        With ``also_ready`` one that was ready, too: a new embedding model cannot take it.
        """
        states = (*UNFINISHED, "ready") if also_ready else UNFINISHED
        worked_on = documents.c.id == document_id, documents.c.state.in_(states)
        self._commit(update(documents).where(*worked_on).values(state="failed", reason=reason))


def give_up(connection: Connection, row: RowMapping) -> None:
    """Stop working on a document, as ``cancel`` does."""
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
    if values:
        set_values(connection, documents, row["id"], values)
