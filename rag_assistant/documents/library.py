"""A document, top to bottom: accept, read, chunk, index, embed, remove.

Accepting is quick and durable; the rest is work in the background, read in one queue and embedded in another, so that a
long document is searchable by keyword while its embeddings, or those of the one before it, are still on their way. Text
recognition is in the queue of reading, behind everything that is to be read, and gives way to it after each page. How
far each document has come stands in the documents' table; after a crash the queues are filled from there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy as shallow_copy
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import IO

from msgspec.structs import replace

from rag_assistant.documents import embedding
from rag_assistant.documents.reading import DocumentReader, Following
from rag_assistant.documents.uploads import Uploads
from rag_assistant.records import Document
from rag_assistant.records.errors import (
    AssistantError,
    DocumentNotFound,
    ExtractionCancelled,
    FileMissing,
    FilesUnavailable,
    StorageFailed,
)
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.runtime.job_queue import Heartbeat, JobQueue, Work
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.scans import ScanStore

log = logging.getLogger(__name__)

# Where several processes share out what waits, one has no more than this of a kind: what it is at, and the next.
MAX_TAKEN = 2
# How often an idle process looks for what others put there.
LOOK_INTERVAL_SECONDS = 2.0
UNFORESEEN = "A server error prevented it from being read; see the server log."


class Library:
    """The documents: accepted here, worked on in the background, found through the retriever.

    With ``tell_others``, what waits is shared out among processes, and one that works takes from it as much as is due.
    """

    def __init__(
        self,
        documents: DocumentStore,
        chunks: ChunkStore,
        embeddings: EmbeddingStore,
        embedders: Embedders,
        uploads: Uploads,
        settings: Callable[[], Settings],
        scans: ScanStore,
        tell_others: Callable[[], None] | None = None,
    ) -> None:
        self.documents = documents
        self._uploads = uploads
        self._settings = settings
        self._max_bytes: Callable[[], int | None] = lambda: None
        self._tell_others = tell_others
        self._works = False
        self._closing = threading.Event()
        self._deleting = threading.Event()
        self._look: Heartbeat | None = None
        self._reader = DocumentReader(documents, chunks, scans, self.local_file, settings, self._closing.is_set)
        self._reading = JobQueue("reading")
        self._embedding = JobQueue("embedding")
        self._embedder = embedding.DocumentEmbedder(
            documents, embeddings, embedders, self._embedding, self._finish, self._closing.is_set
        )
        self._reading.offer("read", self._and_more(self._guarded(self._read)), priority=1)
        # What was there before comes first: a document takes it a tenth of a second.
        self._reading.offer("recognise", self._and_more(self._guarded(self._recognise)))
        self._reading.offer("delete files", self._guarded(self._delete_files))
        self._embedding.offer("embed", self._and_more(self._guarded(self._embedder.embed)), priority=1)
        # Behind everything that is new.
        self._embedding.offer("reindex", self._guarded(self._embedder.reindex))

    def for_person(self, documents: DocumentStore, max_bytes: Callable[[], int | None]) -> Library:
        """Return the same library for those who may see other documents; the work in the background stays one.

        All files of whoever owns the library of a new one have ``max_bytes`` at most.
        """
        own = shallow_copy(self)
        own.documents, own._max_bytes = documents, max_bytes
        return own

    # --- for those who wait

    def accept(
        self,
        file: IO[bytes],
        name: str,
        *,
        origin: str | None = None,
        replaces: int | None = None,
        tags: Sequence[str] = (),
        library_id: int | None = None,
    ) -> tuple[Document, bool]:
        """Keep a file and queue it; return its document, and False if its content was there before.

        With ``replaces`` it is the newer version of that document, and takes its place when it is ready. Raises
        UnsupportedDocument, BodyTooLarge, InvalidRequest, FilesUnavailable, DocumentNotFound, LibraryNotFound,
        SameContent. When it returns, no crash loses the file.
        """
        received = self._uploads.receive(file, name, self._settings().max_upload_mb)
        received = replace(received, origin=origin, replaces=replaces, tags=tuple(tags), library_id=library_id)
        new = False
        try:
            document, new = self.documents.add(received, self._max_bytes())
        finally:
            if not new:
                self._drop(received.file)
        if document.state == "queued":
            self._queue(document.id)
        return document, new

    def trash(self, document_id: int) -> None:
        """Move a document to the trash, from where it is deleted after ``trash_days``. Raises DocumentNotFound."""
        if not self._settings().trash_days:
            return self.remove(document_id)
        self.documents.trash(document_id)
        log.info("Document %s was moved to the trash.", document_id)
        self._delete_files_now()
        return None

    def remove(self, document_id: int, *, in_trash: bool = False) -> None:
        """Delete a document permanently: from now on no search finds it. Raises DocumentNotFound.

        Its file goes at once, or as soon as it can be reached.
        """
        self.documents.delete(document_id, in_trash=in_trash)
        log.info("Document %s was deleted.", document_id)
        self._delete_files_now()

    def read_again(self, document_id: int) -> Document:
        """Read a document once more: it failed, was cancelled, or is to be cut anew. Raises DocumentNotFound.

        One that is ready is found as before until its new chunks are there. Raises FileMissing, FilesUnavailable.
        """
        _, file = self.open_file(document_id)
        file.close()
        document = self.documents.queue_again(document_id)
        if document.state == "queued":
            self._queue(document.id)
        return document

    def open_file(self, document_id: int) -> tuple[Document, IO[bytes]]:
        """Open the uploaded file, to be read from any position; return it with the document that it is the file of.

        A newer version may take its place at any time. Raises DocumentNotFound, FileMissing, FilesUnavailable.
        """
        store, (document, file) = self._uploads.store, self.documents.with_file(document_id)
        try:
            return document, store.open(file)
        except FileNotFoundError as error:
            if self.documents.with_file(document_id)[1] != file:  # A newer version has just taken its place.
                return self.open_file(document_id)
            raise FileMissing(document_id) from error

    @contextmanager
    def local_file(self, document_id: int) -> Iterator[tuple[Document, Path]]:
        """Give the path of the uploaded file on this machine, for as long as it is worked with, with its document.

        Raises DocumentNotFound, FileMissing, FileDamaged, FilesUnavailable.
        """
        store, (document, file) = self._uploads.store, self.documents.with_file(document_id)
        try:
            with store.local(file, document.sha256) as path:
                yield document, path
        except FileNotFoundError as error:
            raise FileMissing(document_id) from error

    def _drop(self, file: str) -> None:
        """Delete a file that belongs to no document; what cannot be reached now is found by the doctor."""
        try:
            self._uploads.store.drop(file)
        except FilesUnavailable as error:
            log.warning("The file %s, which is not needed, stays: %s", file, error)

    def _queue(self, document_id: int) -> None:
        """Put a document into the reading queue. It is accepted already: if that fails, the next start sees to it."""
        try:
            if self._tell_others is None:
                self._reading.add("read", document_id)
                return
            self.take_over()
            self._tell_others()
        except Exception:
            log.exception("Document %s waits for the next start: the queue failed", document_id)

    # --- in the background

    def start(self) -> None:
        """Take up what a crash left half done, and begin to work."""
        self._uploads.clean_up(self.documents.known_files())
        self._works = True
        self._take_up(of_ours=True, held=True, recognises=self._reader.recognises)
        self._reading.add("delete files")
        self._embedding.add("reindex")
        self._reading.start()
        self._embedding.start()
        self._look = Heartbeat(self._take_up_forgotten, LOOK_INTERVAL_SECONDS)
        self._look.start()

    def _take_up_forgotten(self) -> None:
        """Queue the documents that wait and that no queue knows of, such as those that a command accepted.

        What was in the trash for long enough is deleted.
        """
        try:
            for document_id in self.documents.trashed_before(
                datetime.now(UTC) - timedelta(days=self._settings().trash_days)
            ):
                with suppress(DocumentNotFound):  # Another process was quicker.
                    self.remove(document_id, in_trash=True)
            if not self.busy and self.documents.any_unfinished():
                self._take_up(of_ours=True, held=True, recognises=False)
        except Exception:
            log.exception("Whether a document was forgotten is looked at again in %g s", LOOK_INTERVAL_SECONDS)

    def take_over(self) -> None:
        """Go on with what nobody works on: it waits, or its process died. Delete files that another one could not."""
        if not self._works or self._closing.is_set():
            return
        self._take_up(of_ours=self._tell_others is not None, recognises=False)
        if not self._deleting.is_set() and self.documents.files_to_delete():
            self._deleting.set()
            self._reading.add("delete files")

    def _and_more(self, work: Work) -> Work:
        """Return the work, after which comes what else waits."""

        def work_on(document_id: int) -> None:
            work(document_id)
            try:
                if self._tell_others is not None:
                    self.take_over()
            except StorageFailed as error:
                log.error("The library waits: %s", error)

        return work_on

    def _take_up(self, *, of_ours: bool, recognises: bool, held: bool = False) -> None:
        max_taken = None if self._tell_others is None else MAX_TAKEN
        to_read, to_embed, to_recognise = self.documents.take_up_unfinished(
            recognises=recognises, of_ours=of_ours, held=held, max_taken=max_taken
        )
        if to_read or to_embed or to_recognise:
            log.info("Documents to process: %s.", len(to_read) + len(to_embed) + len(to_recognise))
        for document_id in to_read:
            self._reading.add("read", document_id)
        for document_id in to_recognise:
            self._reading.add("recognise", document_id)
        for document_id in to_embed:
            self._embedding.add("embed", document_id)

    def close(self) -> None:
        """Stop working, after the batch at hand."""
        self._closing.set()
        if self._look is not None:
            self._look.stop()
        self._reading.stop()
        self._embedding.stop()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many jobs wait for their turn, and how many for a later moment."""
        (read_now, read_later), (embed_now, embed_later) = self._reading.waiting, self._embedding.waiting
        return read_now + embed_now, read_later + embed_later

    @property
    def busy(self) -> bool:
        """Whether anything waits in the queues or is being worked on."""
        return self._reading.busy or self._embedding.busy

    def reindex(self) -> None:
        """Embed whatever the present model has not embedded, then let search use its vectors."""
        self._embedding.add("reindex")

    def _read(self, document_id: int) -> None:
        self._go_on(document_id, self._reader.read(document_id))

    def _recognise(self, document_id: int) -> None:
        self._go_on(document_id, self._reader.recognise(document_id))

    def _go_on(self, document_id: int, following: Following) -> None:
        """Queue what comes next for a document."""
        if following == "embed":
            self._embedding.add("embed", document_id)
        elif following == "recognise":
            self._reading.add("recognise", document_id)

    def _finish(self, document_id: int, embedder: str) -> None:
        if not self.documents.finish(document_id, embedder, recognises=self._reader.recognises):
            if self.documents.is_ours_in("recognising", document_id):
                self._go_on(document_id, "recognise")
            return
        log.info("Document %s is ready.", document_id)
        self._delete_files_now()

    # --- files that are not needed any more

    def _delete_files_now(self) -> None:
        try:
            self._delete_files()
        except (StorageFailed, OSError) as error:
            log.warning("Files of deleted documents are deleted later: %s", error)
            self._reading.add("delete files", 0, embedding.RETRY_BACKOFF_SECONDS[0])

    def _delete_files(self, _: int = 0) -> None:
        for file in self.documents.files_to_delete():
            self._uploads.store.drop(file)
            self.documents.forget_file(file)
        self._deleting.clear()

    # --- how a piece of work ends

    def _guarded(self, work: Work) -> Work:
        """Return the work with its endings: what goes wrong fails the document; what is away is waited for.

        With a database or with files that are away there is nothing else to do, so the queue waits.
        """

        def guarded(document_id: int) -> None:
            for seconds in chain(embedding.RETRY_BACKOFF_SECONDS, repeat(embedding.RETRY_BACKOFF_SECONDS[-1])):
                try:
                    return work(document_id)
                except ExtractionCancelled:
                    return None  # A person said so, or we close: then it is taken up at the next start.
                except StorageFailed as error:
                    log.error("The library waits: %s", error)
                    self._say_why(document_id, f"{error} Trying again in {seconds:g} seconds.")
                except AssistantError as error:
                    log.warning("Document %s failed: %s", document_id, error)
                    return self.documents.fail(document_id, str(error))
                except Exception:
                    log.exception("Document %s failed", document_id)
                    return self.documents.fail(document_id, UNFORESEEN)
                if self._closing.wait(seconds):
                    return None
            return None

        return guarded

    def _say_why(self, document_id: int, reason: str) -> None:
        """Show at a document why it waits, if the database is not what it waits for."""
        try:
            self.documents.say(document_id, reason)
        except StorageFailed:
            log.debug("What document %s waits for cannot be shown", document_id)
