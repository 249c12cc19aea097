"""Move the files of documents from one store into another; what breaks off is gone on with the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from shutil import copyfileobj

from rag_assistant.files.store import FileStore
from rag_assistant.records import Document
from rag_assistant.records.errors import FileDamaged, FileMissing
from rag_assistant.storage.documents.documents import DocumentStore


def move_files(documents: DocumentStore, source: FileStore, target: FileStore) -> Iterator[Document]:
    """Move what lies in ``source``, and yield each document whose file was moved.

    A file is deleted where it was when its row says that it is elsewhere. Raises FileMissing, FileDamaged and
    FilesUnavailable; then the rest is where it was.
    """
    target.incoming.mkdir(parents=True, exist_ok=True)
    for document_id in documents.in_store(source.owner):
        document, name = documents.with_file(document_id)
        part = target.incoming / f"{name}.part"
        try:
            with source.local(name, document.sha256) as path, path.open("rb") as file, part.open("wb") as copy:
                if hashlib.file_digest(file, "sha256").hexdigest() != document.sha256:
                    raise FileDamaged(name, source.address)
                file.seek(0)
                copyfileobj(file, copy)
            target.keep(part, name)
        except FileNotFoundError as error:
            raise FileMissing(document_id, source.address) from error
        finally:
            part.unlink(missing_ok=True)
        documents.note_moved(document_id, source.owner, target.owner)
        source.drop(name)
        yield document
