"""A library of documents: what people and commands do with them. The rest is done in the background (processing.py).

Accepting is quick and durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.documents.processing import DocumentProcessing
from rag_assistant.documents.uploads import Uploads, tags_in_archive
from rag_assistant.extraction.archives import unpacked
from rag_assistant.records import Document, errors
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.documents import DocumentStore

log = logging.getLogger(__name__)


class Library(Struct, frozen=True):
    """Documents: accepted here, processed in the background, found through the retriever.

    An owner's files may have ``max_bytes`` in total.
    """

    documents: DocumentStore
    uploads: Uploads
    processing: DocumentProcessing
    settings: Callable[[], Settings]
    max_bytes: Callable[[], int | None] = lambda: None

    def accept(
        self,
        file: IO[bytes],
        name: str,
        *,
        origin: str | None = None,
        replaces: int | None = None,
        tags: Sequence[str] = (),
        library_id: int | None = None,
        modified: str | None = None,
    ) -> tuple[Document, bool]:
        """Store a file and queue it; return its document, and False if its content existed already.

        With ``replaces`` it is a newer version of that document, which it replaces when it is ready. Raises
        UnsupportedDocument, BodyTooLarge, InvalidRequest, FilesUnavailable, DocumentNotFound, LibraryNotFound,
        SameContent. Once it returns, no crash loses the file.
        """
        received = self.uploads.receive(file, name, self.settings().max_upload_mb)
        received = replace(received, origin=origin, replaces=replaces, tags=tuple(tags), library_id=library_id)
        received = replace(received, modified=modified)
        new = False
        try:
            document, new = self.documents.add(received, self.max_bytes())
        finally:
            if not new:
                self._drop(received.file)
        if document.state == "queued":
            self.processing.queue(document.id)
        return document, new

    def accept_archive(
        self, file: IO[bytes], name: str, *, tags: Sequence[str] = (), library_id: int | None = None
    ) -> tuple[list[tuple[Document, bool]], list[tuple[str, str]]]:
        """Store and queue each file in a ZIP archive; return what ``accept`` returns, and refused ones with the reason.

        The archive's name and the file's folder in it become tags. Raises UnsupportedDocument if none can be unpacked,
        and what ``accept`` raises about the library.
        """
        settings, folder = self.settings(), self.uploads.store.incoming
        folder.mkdir(parents=True, exist_ok=True)
        accepted, refused = [], []
        for member, content in unpacked(file, settings.max_upload_mb, settings.extraction_timeout_seconds, folder):
            path = member.path or name
            try:
                if member.refused:
                    raise errors.UnsupportedDocument(member.refused)
                own = [*tags, *tags_in_archive(name, member.path)]
                accepted.append(self.accept(content, path, tags=own, library_id=library_id))
            except (errors.UnsupportedDocument, errors.BodyTooLarge, errors.InvalidRequest) as error:
                refused.append((path, str(error)))
        return accepted, refused

    def trash(self, document_id: int) -> None:
        """Move a document to the trash, where it is deleted after ``trash_days``. Raises DocumentNotFound."""
        if not self.settings().trash_days:
            return self.remove(document_id)
        self.documents.trash(document_id)
        log.info("Document %s was moved to the trash.", document_id)
        self.processing.delete_files_now()
        return None

    def remove(self, document_id: int, *, in_trash: bool = False) -> None:
        """Delete a document permanently, for searches at once. Raises DocumentNotFound.

        Its file is deleted at once, or as soon as it can be reached.
        """
        self.documents.delete(document_id, in_trash=in_trash)
        log.info("Document %s was deleted.", document_id)
        self.processing.delete_files_now()

    def read_again(self, document_id: int) -> Document:
        """Read a document again: it failed, was cancelled, or is to be chunked differently. Raises DocumentNotFound.

        A ready one is found as before until its new chunks exist. Raises FileMissing, FilesUnavailable.
        """
        try:
            self.uploads.store.open(self.documents.with_file(document_id)[1]).close()
        except FileNotFoundError as error:
            raise errors.FileMissing(document_id) from error
        document = self.documents.queue_again(document_id)
        if document.state == "queued":
            self.processing.queue(document.id)
        return document

    def open_file(self, document_id: int) -> tuple[Document, IO[bytes]]:
        """Open the uploaded file for random access, compared with its hash; return it with its document.

        It is compared before its first byte is handed out: afterwards, a response could only be broken off. A newer
        version may replace it at any time. Raises DocumentNotFound, FileMissing, FileDamaged, FilesUnavailable.
        """
        store, (document, file) = self.uploads.store, self.documents.with_file(document_id)
        try:
            with self.uploads.damage_logged(document):
                return document, store.verified(file, document.sha256, document.size_bytes)
        except FileNotFoundError as error:
            if self.documents.with_file(document_id)[1] != file:  # A newer version has just replaced it.
                return self.open_file(document_id)
            raise errors.FileMissing(document_id) from error

    def _drop(self, file: str) -> None:
        """Delete a file that belongs to no document; if it can't be reached now, the doctor finds it."""
        try:
            self.uploads.store.drop(file)
        except errors.FilesUnavailable as error:
            log.warning("The unneeded file %s could not be deleted: %s", file, error)
