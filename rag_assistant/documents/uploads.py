"""Uploaded files: kept under generated names in a store (rag_assistant/files), deleted when nobody needs them."""

import hashlib
import logging
import time
import unicodedata
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj
from typing import IO

from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.files import FileStore
from rag_assistant.files.store import BYTES_AT_ONCE, StoredFile
from rag_assistant.records import Document, NewDocument
from rag_assistant.records.errors import BodyTooLarge, FileDamaged, FileMissing, InvalidRequest
from rag_assistant.storage.documents.documents import DocumentStore

log = logging.getLogger(__name__)

MAX_NAME_CHARS, MAX_TAG_CHARS = 255, 64
STRAY_AFTER_SECONDS = 3600.0


class Uploads:
    """Files with generated names. No name that somebody gave is ever used as a path."""

    def __init__(self, store: FileStore) -> None:
        self.store = store

    def receive(self, file: IO[bytes], name: str, max_mb: int) -> NewDocument:
        """Store a file under a generated name. Once it returns, no crash loses it.

        Raises UnsupportedDocument, BodyTooLarge, InvalidRequest, FilesUnavailable; then nothing is left.
        """
        name, stored_name = clean_name(name), uuid.uuid4().hex
        self.store.incoming.mkdir(parents=True, exist_ok=True)
        path = self.store.incoming / f"{stored_name}.part"
        try:
            size, sha256, head = _write(file, path, max_mb)
            media_type = media_type_of(head, name)
            self.store.keep(path, stored_name)
        finally:
            path.unlink(missing_ok=True)
        return NewDocument(name, media_type, size, sha256, stored_name)

    @contextmanager
    def local_file(self, documents: DocumentStore, document_id: int) -> Iterator[tuple[Document, Path]]:
        """Give an uploaded file's path, with its document. Raises DocumentNotFound and what a file store raises."""
        document, file = documents.with_file(document_id)
        try:
            with self.damage_logged(document), self.store.local(file, document.sha256, document.size_bytes) as path:
                yield document, path
        except FileNotFoundError as error:
            raise FileMissing(document_id) from error

    @contextmanager
    def damage_logged(self, document: Document) -> Iterator[None]:
        """Log it if the file of a document is not the one that was uploaded."""
        try:
            yield
        except FileDamaged as error:
            log.error("Document %s, %s, in %s: %s", document.id, document.name, self.store.address, error)
            raise

    def names(self) -> set[str]:
        return {one.name for one in self.store.stored()}

    def is_stray(self, one: StoredFile, known_names: Collection[str]) -> bool:
        """Return whether a file is old and unknown: left behind by an aborted upload or a crash."""
        return one.name not in known_names and one.stored_at < time.time() - STRAY_AFTER_SECONDS

    def drop_all(self, names: Iterable[str]) -> None:
        for name in names:
            self.store.drop(name)

    def clean_up(self, known_names: Collection[str]) -> None:
        """Delete what a crash left behind; of a shared store, only what is on this machine."""
        if not self.store.is_shared:
            self.drop_all([one.name for one in self.store.stored() if self.is_stray(one, known_names)])
            return
        before = time.time() - STRAY_AFTER_SECONDS
        for path in self.store.incoming.glob("*.part"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()


def clean_name(name: str) -> str:
    """Return a file's name for display: no folders, no invisible characters, composed accents."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    seen = "".join(character for character in last if character.isprintable()).strip()
    return seen[:MAX_NAME_CHARS] or "unnamed"


def tags_in_archive(archive: str, path: str) -> list[str]:
    """Return an archive's name, and the folder of a file in it, as tags; none without a path."""
    folders = path.split("/")[:-1]
    names = [clean_name(archive).rsplit(".", 1)[0], "/".join(map(clean_name, folders))] if path else []
    return [tag for name in names if (tag := name.replace(",", " ")[:MAX_TAG_CHARS].strip())]


def _write(file: IO[bytes], path: Path, max_mb: int) -> tuple[int, str, bytes]:
    """Write a file to disk; return its size, its SHA-256 and its first bytes."""
    size, digest, head = 0, hashlib.sha256(), b""
    with path.open("xb") as target:
        while piece := file.read(BYTES_AT_ONCE):
            size += len(piece)
            if size > max_mb * 1_000_000:
                raise BodyTooLarge(f"The file is larger than {max_mb} MB, which is the limit.")
            head = head or piece
            digest.update(piece)
            target.write(piece)
    if not size:
        raise InvalidRequest("The file is empty.")
    return size, digest.hexdigest(), head


def move_files(documents: DocumentStore, source: FileStore, target: FileStore) -> Iterator[str]:
    """Move the files in ``source``, and yield a line for each moved one.

    The old copy is deleted once the document's row names the new place. Raises FileMissing, FileDamaged and
    FilesUnavailable; then the rest stays where it was.
    """
    target.incoming.mkdir(parents=True, exist_ok=True)
    for document_id, document_name, sha256, name in documents.files_in(source.owner):
        part = target.incoming / f"{name}.part"
        try:
            with source.verified(name, sha256) as file, part.open("wb") as copy:
                copyfileobj(file, copy)
            target.keep(part, name)
        except FileNotFoundError as error:
            raise FileMissing(document_id) from error
        finally:
            part.unlink(missing_ok=True)
        documents.note_moved(name, source.owner, target.owner)
        source.drop(name)
        yield f"{document_name}: moved, document {document_id}"
