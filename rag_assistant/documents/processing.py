"""What happens to documents in the background: they are read, chunked, indexed, embedded, and their files deleted.

There is one queue for reading and another for embedding, so that a document is searchable by keyword before it, or the
one before it, is embedded. Text recognition is in the reading queue at low priority, and gives way after each page. The
documents table has each document's state; after a crash the queues are refilled from it.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import chain, repeat

from rag_assistant.documents import embedding
from rag_assistant.documents.reading import DocumentReader, Following
from rag_assistant.documents.uploads import Uploads
from rag_assistant.records import errors
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.runtime.background import Heartbeat, JobQueue, SteadyClock, Work
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.rows import ScanStore

log = logging.getLogger(__name__)

# If several processes share the work, each claims this much of a kind: the current job and the next.
MAX_TAKEN = 2
# How often an idle process looks for work from others.
LOOK_INTERVAL_SECONDS = 2.0
# What is done with a document, or with all of them.
Step = Callable[[int], Following]
UNFORESEEN = "A server error prevented it from being read; see the server log."


class DocumentProcessing:
    """Works on everybody's documents.

    With ``tell_others``, processes share the work, and each claims as much as is due.
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
        self._documents = documents
        self._uploads = uploads
        self._settings = settings
        self._tell_others = tell_others
        self._clock = SteadyClock()
        self._works = False
        self._closing = threading.Event()
        self._deleting = threading.Event()
        self._look: Heartbeat | None = None
        local_file = partial(uploads.local_file, documents)
        self._reader = DocumentReader(documents, chunks, scans, local_file, settings, self._closing.is_set)
        self._reading = JobQueue("reading", documents.owner_of)
        self._embedding = JobQueue("embedding", documents.owner_of)
        self._embedder = embedding.DocumentEmbedder(
            documents, embeddings, embedders, self._embedding, self._finish, self._closing.is_set
        )
        self._reading.offer("read", self._job(self._reader.read), priority=1)
        # First what exists already: a document takes it a tenth of a second.
        self._reading.offer("recognise", self._job(self._reader.recognise))
        self._reading.offer("delete files", self._job(self._delete_files))
        self._embedding.offer("embed", self._job(self._embedder.embed), priority=1)
        # After everything that is new.
        self._embedding.offer("reindex", self._job(self._embedder.reindex))

    def queue(self, document_id: int) -> None:
        """Put a document into the reading queue. It is accepted already: if that fails, the next start queues it."""
        try:
            if self._tell_others is None:
                self._reading.add("read", document_id)
                return
            self.take_over()
            self._tell_others()
        except Exception:
            log.exception("Document %s will be processed at the next start: it could not be queued", document_id)

    def start(self) -> None:
        """Take up unfinished work of a crash, and start working."""
        self._uploads.clean_up(self._documents.known_files())
        self._works = True
        self._take_up(of_ours=True, held=True, recognises=self._reader.recognises)
        self._reading.add("delete files")
        self._embedding.add("reindex")
        self._reading.start()
        self._embedding.start()
        self._look = Heartbeat(self._take_up_forgotten, LOOK_INTERVAL_SECONDS)
        self._look.start()

    def _take_up_forgotten(self) -> None:
        """Queue documents that are in no queue, such as a command's; delete those in the trash for long enough."""
        try:
            moment = self._clock.now()
            before = None if moment is None else moment - timedelta(days=self._settings().trash_days)
            for document_id in () if before is None else self._documents.trashed_before(before):
                with suppress(errors.DocumentNotFound):  # Another process was quicker.
                    self._documents.delete(document_id, in_trash=True)
                    log.info("Document %s was deleted.", document_id)
                    self.delete_files_now()
            if not self.busy and self._documents.any_unfinished():
                self._take_up(of_ours=True, held=True, recognises=False)
        except Exception:
            log.exception("Checking for unqueued documents failed; trying again in %g s", LOOK_INTERVAL_SECONDS)

    def take_over(self) -> None:
        """Take over unclaimed work, waiting or of a dead process. Delete files that others couldn't."""
        if not self._works or self._closing.is_set():
            return
        self._take_up(of_ours=self._tell_others is not None, recognises=False)
        if not self._deleting.is_set() and self._documents.files_to_delete():
            self._deleting.set()
            self._reading.add("delete files")

    def _take_up(self, *, of_ours: bool, recognises: bool, held: bool = False) -> None:
        max_taken = None if self._tell_others is None else MAX_TAKEN
        to_read, to_embed, to_recognise = self._documents.take_up_unfinished(
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
        """Stop working after the current batch."""
        self._closing.set()
        if self._look is not None:
            self._look.stop()
        self._reading.stop()
        self._embedding.stop()

    @property
    def waiting(self) -> tuple[int, int]:
        """Return how many jobs are due, and how many are scheduled for later."""
        (read_now, read_later), (embed_now, embed_later) = self._reading.waiting, self._embedding.waiting
        return read_now + embed_now, read_later + embed_later

    @property
    def busy(self) -> bool:
        """Whether any work is queued or in progress."""
        return self._works and (self._reading.busy or self._embedding.busy)

    def reindex(self) -> None:
        """Embed what the current model hasn't, then switch search to it; or leave this to the process that works."""
        if self._works:
            self._embedding.add("reindex")
        else:
            self._embedder.leave_to_others()

    def _job(self, step: Step) -> Work:
        """Return a step as a job, after which the document's next one is queued, and what is due is taken over."""

        def work(document_id: int) -> None:
            self._go_on(document_id, self._guarded(step, document_id))
            try:
                if self._tell_others is not None:
                    self.take_over()
            except errors.StorageFailed as error:
                log.error("The library waits: %s", error)

        return work

    def _go_on(self, document_id: int, following: Following) -> None:
        if following == "embed":
            self._embedding.add("embed", document_id)
        elif following == "recognise":
            self._reading.add("recognise", document_id)

    def _finish(self, document_id: int, embedder: str) -> None:
        if not self._documents.finish(document_id, embedder, recognises=self._reader.recognises):
            if self._documents.is_ours_in("recognising", document_id):
                self._go_on(document_id, "recognise")
            return
        log.info("Document %s is ready.", document_id)
        self.delete_files_now()

    # --- unneeded files

    def delete_files_now(self) -> None:
        """Delete the files of deleted documents, those that can't be reached as soon as they can."""
        try:
            self._delete_files()
        except (errors.StorageFailed, OSError) as error:
            log.warning("Files of deleted documents are deleted later: %s", error)
            self._reading.add("delete files", 0, embedding.RETRY_BACKOFF_SECONDS[0])

    def _delete_files(self, _: int = 0) -> None:
        for file in self._documents.files_to_delete():
            self._uploads.store.drop(file)
            self._documents.forget_file(file)
        self._deleting.clear()

    # --- errors

    def _guarded(self, step: Step, document_id: int) -> Following:
        """Run a step; its errors fail the document, but without the database or the files, the whole queue waits."""
        for seconds in chain(embedding.RETRY_BACKOFF_SECONDS, repeat(embedding.RETRY_BACKOFF_SECONDS[-1])):
            try:
                return step(document_id)
            except errors.ExtractionCancelled:
                return None  # Cancelled, or we are closing: then it continues at the next start.
            except errors.StorageFailed as error:
                log.error("The library waits: %s", error)
                with suppress(errors.StorageFailed):  # It may be the database that it waits for.
                    self._documents.say(document_id, f"{error} Trying again in {seconds:g} seconds.")
            except errors.AssistantError as error:
                log.warning("Document %s failed: %s", document_id, error)
                self._documents.fail(document_id, str(error))
                return None
            except Exception:
                log.exception("Document %s failed", document_id)
                self._documents.fail(document_id, UNFORESEEN)
                return None
            if self._closing.wait(seconds):
                return None
        return None
