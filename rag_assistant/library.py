"""A document, top to bottom: accept, read, chunk, index, embed, remove.

Accepting is quick and durable; the rest happens in a thread of its own and is taken up again after a crash.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from rag_assistant.errors import AssistantError, BodyTooLarge, InvalidRequest, StorageFailed
from rag_assistant.records import Document
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.embedding import Vectors
from rag_assistant.retrieval.extraction import extract
from rag_assistant.retrieval.loaders import media_type_of
from rag_assistant.retrieval.words import search_words
from rag_assistant.settings import Settings
from rag_assistant.storage.documents import DocumentStore

log = logging.getLogger(__name__)

BYTES_AT_ONCE = 1 << 20
CHUNKS_AT_ONCE = 16
SECONDS_BETWEEN_LOOKS = 1.0
LONGEST_NAME = 255
SECONDS_UNTIL_STRAY = 3600.0


class Embedder(Protocol):
    """Turns text into vectors."""

    name: str

    def embed(self, texts: list[str]) -> Vectors:
        """Return one vector for each text."""


class Library:
    """The documents: accepted here, worked on by one thread, found through the retriever."""

    def __init__(
        self, store: DocumentStore, embedder: Embedder, uploads: Path, settings: Callable[[], Settings]
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._uploads = uploads
        self._settings = settings
        self._something_queued = threading.Event()
        self._closing = threading.Event()
        self._left_half_done = False

    def accept(self, file: IO[bytes], name: str) -> tuple[Document, bool]:
        """Keep a file and queue it; return its document, and False if its content was there before.

        Raises UnsupportedDocument, BodyTooLarge, InvalidRequest. When it returns, the file is on the disk.
        """
        name = _clean_name(name)
        self._uploads.mkdir(parents=True, exist_ok=True)
        path = self._uploads / f"{uuid.uuid4().hex}.part"
        try:
            size, sha256, head = self._receive(file, path)
            media_type = media_type_of(head, name)
            kept = path.with_suffix("")
            path.rename(kept)
            document, new = self._store.add(name, media_type, size, sha256, kept.name)
            if not new:
                kept.unlink()
        finally:
            path.unlink(missing_ok=True)
        self._something_queued.set()
        return document, new

    def remove(self, document_id: int) -> None:
        """Delete a document: from now on no search finds it. Raises DocumentNotFound."""
        file = self._store.delete(document_id)
        (self._uploads / file).unlink(missing_ok=True)
        log.info("Document %s was deleted.", document_id)

    def path_of(self, document_id: int) -> Path:
        """Return where the uploaded file lies. Raises DocumentNotFound."""
        return self._uploads / self._store.file_of(document_id)

    def start(self) -> None:
        """Take up what a crash left half done, and begin to work on the queue, in a thread of its own."""
        again = self._store.requeue_unfinished()
        if again:
            log.info("%s documents are taken up again.", again)
        self._drop_strays()
        threading.Thread(target=self._work, name="library", daemon=True).start()

    def close(self) -> None:
        """Stop working on the queue, after the batch at hand."""
        self._closing.set()
        self._something_queued.set()

    def work_through(self) -> None:
        """Read and embed everything that is queued."""
        if self._left_half_done:
            self._store.requeue_unfinished()
            self._left_half_done = False
        while not self._closing.is_set() and (document := self._store.take_queued()) is not None:
            self._ingest(document)

    def _work(self) -> None:
        """Work on the queue until we close; look regularly for what another process has queued."""
        while not self._closing.is_set():
            try:
                self.work_through()
            except AssistantError as error:
                log.error("The library waits: %s", error)
            except Exception:
                log.exception("The library waits")
            self._something_queued.wait(SECONDS_BETWEEN_LOOKS)
            self._something_queued.clear()

    def _ingest(self, document: Document) -> None:
        """Bring one document from ``reading`` to ``ready`` or ``failed``."""
        try:
            if self._read(document) and self._embed(document):
                self._store.finish(document.id)
                log.info('Document %s ("%s") is ready.', document.id, document.name)
        except StorageFailed:
            self._left_half_done = True
            raise
        except AssistantError as error:
            self._store.fail(document.id, str(error))
            log.warning('Document %s ("%s") failed: %s', document.id, document.name, error)
        except Exception:
            self._store.fail(document.id, "An error of the server kept it from being read; its log says more.")
            log.exception("Document %s failed", document.id)

    def _read(self, document: Document) -> bool:
        """Keep text, chunks and words: keyword search finds the document from here on."""
        settings = self._settings()
        extracted = extract(
            self.path_of(document.id),
            document.media_type,
            memory_mb=settings.extraction_memory_mb,
            timeout_seconds=settings.extraction_timeout_seconds,
        )
        chunks = chunk_document(extracted, settings.chunk_chars)
        words = [" ".join(search_words(f"{document.name} {chunk.text}")) for chunk in chunks]
        return self._store.keep_text(document.id, extracted, chunks, words)

    def _embed(self, document: Document) -> bool:
        """Embed what is not embedded yet, batch by batch; False if the document went away or we close."""
        missing = self._store.without_embedding(document.id, self._embedder.name)
        for start in range(0, len(missing), CHUNKS_AT_ONCE):
            batch = missing[start : start + CHUNKS_AT_ONCE]
            vectors = self._embedder.embed([text for _, text in batch])
            rows = [(chunk_id, vector.tobytes()) for (chunk_id, _), vector in zip(batch, vectors, strict=True)]
            if self._closing.is_set() or not self._store.keep_embeddings(document.id, self._embedder.name, rows):
                return False
        return True

    def _receive(self, file: IO[bytes], path: Path) -> tuple[int, str, bytes]:
        """Write a file to the disk; return its size, its SHA-256 and its first bytes."""
        most_mb = self._settings().max_upload_mb
        size, digest, head = 0, hashlib.sha256(), b""
        with path.open("xb") as kept:
            while piece := file.read(BYTES_AT_ONCE):
                size += len(piece)
                if size > most_mb * 1_000_000:
                    raise BodyTooLarge(f"The file is larger than {most_mb} MB, the largest that is accepted.")
                head = head or piece[:4096]
                digest.update(piece)
                kept.write(piece)
            kept.flush()
            os.fsync(kept.fileno())
        if not size:
            raise InvalidRequest("The file is empty.")
        return size, digest.hexdigest(), head

    def _drop_strays(self) -> None:
        """Delete old files that belong to no document: what an aborted upload or a crash in a deletion left behind."""
        if self._uploads.exists():
            known = self._store.known_files()
            for path in self._uploads.iterdir():
                if path.name not in known and time.time() - path.stat().st_mtime > SECONDS_UNTIL_STRAY:
                    path.unlink(missing_ok=True)


def _clean_name(name: str) -> str:
    """Return a file's name for people: no folders, nothing that cannot be seen. It is never used as a path."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    seen = "".join(character for character in last if character.isprintable()).strip()
    return seen[:LONGEST_NAME] or "unnamed"
