"""Exported files: a text, or a zip archive with it; and our own archive, with its documents' files.

Like every potentially hostile file, they are read in a sandboxed process.
"""

from __future__ import annotations

import lzma
import re
import threading
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from msgspec import Struct
from msgspec.json import Decoder, encode

from rag_assistant.conversations.exchange.archive import ALLOWED, FIRST_LINE, line_of
from rag_assistant.conversations.exchange.products import MAX_CONVERSATIONS, Export, read_texts
from rag_assistant.extraction.sandbox_process import Limits, confined
from rag_assistant.records import Document, errors
from rag_assistant.records.archive import ArchivedDocument, ArchivedNote, WholeConversation
from rag_assistant.runtime.data_dir import written_whole

if TYPE_CHECKING:  # A sandboxed process has no use for a database.
    from rag_assistant.storage.conversations.exchange import ExchangeStore
    from rag_assistant.storage.documents.documents import DocumentStore

ARCHIVE, DOCUMENTS = "archive.jsonl", "documents"
# ChatGPT's file names, in one part or in several.
CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
ZIP = b"PK\x03\x04"
BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError)


def read_export(file: IO[bytes], max_bytes: int, max_conversations: int = MAX_CONVERSATIONS) -> Export:
    """Return an exported file's content of up to ``max_bytes``. Raises BodyTooLarge, MalformedBody, InvalidRequest."""
    beginning = file.read(len(ZIP))
    file.seek(0)
    if beginning != ZIP:
        return read_texts([_bounded(file, max_bytes).removeprefix(BOM_UTF8)], max_conversations)
    try:
        with zipfile.ZipFile(file) as packed:
            return _read_zip(packed, max_bytes, max_conversations)
    except (*BROKEN, OSError) as error:  # Errors of bz2, and of an offset before the file's start.
        raise errors.MalformedBody(f"The zip file cannot be read ({error}).") from error


@contextmanager
def document_file(file: IO[bytes], document: ArchivedDocument) -> Iterator[IO[bytes] | None]:
    """Give the file of an archived document, ``None`` if it isn't included. Raises MalformedBody."""
    try:
        with zipfile.ZipFile(file) as packed:
            try:
                with packed.open(f"{DOCUMENTS}/{document.sha256}") as content:
                    yield content
            except KeyError:
                yield None
    except BROKEN as error:
        raise errors.MalformedBody(f"The archive cannot be read ({error}).") from error


# A document with its open file, or without one.
Archived = tuple[ArchivedDocument, IO[bytes] | None]


def pack_archive(
    file: IO[bytes],
    documents: Iterable[Archived],
    conversations: Iterable[WholeConversation],
    notes: Iterable[ArchivedNote] = (),
) -> tuple[int, int]:
    """Write an archive into an open file; return the number of documents and conversations in it."""
    there, packed_already = [], set[str]()  # Two libraries may have the same content.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for document, opened in documents:
            there.append(document)
            if opened is not None and document.sha256 not in packed_already:
                packed_already.add(document.sha256)
                with packed.open(f"{DOCUMENTS}/{document.sha256}", "w", force_zip64=True) as content:
                    copyfileobj(opened, content)
        with packed.open(ARCHIVE, "w", force_zip64=True) as lines:
            lines.write(FIRST_LINE.encode())
            lines.writelines(line_of(document).encode() for document in there)
            written = [lines.write(line_of(conversation).encode()) for conversation in conversations]
            lines.writelines(line_of(note).encode() for note in notes)
    return len(there), len(written)


def write_archive(
    path: Path,
    documents: Iterable[Archived],
    conversations: Iterable[WholeConversation],
    notes: Iterable[ArchivedNote] = (),
) -> tuple[int, int]:
    """Write an archive readable only by its owner; return the number of documents and conversations in it.

    Each document comes with its file, if that exists. Raises InvalidRequest if the archive exists or can't be written;
    then no file is left.
    """
    try:
        if path.exists():
            raise errors.InvalidRequest(f"{path} exists already. Name a file that does not.")
        with written_whole(path) as file:
            return pack_archive(file, documents, conversations, notes)
    except OSError as error:
        raise errors.InvalidRequest(f"{path} cannot be written ({error.strerror}).") from error


def _read_zip(packed: zipfile.ZipFile, max_bytes: int, max_conversations: int) -> Export:
    names = packed.namelist()
    chosen = [ARCHIVE] if ARCHIVE in names else sorted(filter(CONVERSATIONS.fullmatch, names))
    if not chosen:
        listing = ", ".join(names[:6]) or "nothing"
        raise errors.InvalidRequest(f"The zip file holds {listing[:200]}, but no conversations. {ALLOWED}")
    parts = []
    for name in chosen:
        with packed.open(name) as file:
            content = _bounded(file, max_bytes)
        max_bytes -= len(content)
        parts.append(content.removeprefix(BOM_UTF8))
    return read_texts(parts, max_conversations)


def _bounded(file: IO[bytes], max_bytes: int) -> bytes:
    content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise errors.BodyTooLarge(
            f"The conversations in the file have more than {max_bytes / 1e6:.0f} MB, the most allowed."
        )
    return content


# Opens the file of a document by id; gives it with the document's current state.
OpenFile = Callable[[int], tuple[Document, IO[bytes]]]
DOCUMENTS_AT_ONCE = 100


def archived_documents(documents: DocumentStore, open_file: OpenFile | None) -> Iterator[Archived]:
    """Yield every document that still exists, newest first; with ``open_file``, with its file, if that exists."""
    before: int | None = None
    while page := documents.page(DOCUMENTS_AT_ONCE, before):
        before = page[-1].id
        for one in page:
            with suppress(errors.DocumentNotFound):
                opened: AbstractContextManager[IO[bytes] | None] = nullcontext()
                if open_file is not None:
                    with suppress(errors.FileMissing):
                        one, opened = open_file(one.id)
                with opened as file:
                    date = one.date if one.date_from == "person" else None
                    yield ArchivedDocument(one.id, one.name, one.sha256, one.tags, date), file


def archived_conversations(store: ExchangeStore) -> Iterator[WholeConversation]:
    """Yield every conversation, oldest first; those deleted meanwhile are left out."""
    for conversation_id in store.ids():
        with suppress(errors.ConversationNotFound):
            yield store.read(conversation_id)


# Python objects take several times as much as their text; and branches repeat earlier messages.
MIN_MEMORY_MB, MEMORY_PER_BYTE, OUTPUT_PER_BYTE = 2048, 8, 4
WAIT_TIMEOUT_SECONDS = 30.0
REFUSALS = {kind.__name__: kind for kind in (errors.BodyTooLarge, errors.MalformedBody, errors.InvalidRequest)}

_importing = threading.Lock()


class _About(Struct):
    documents: tuple[ArchivedDocument, ...] = ()
    unreadable: int = 0
    notes: tuple[ArchivedNote, ...] = ()
    mended: int = 0
    # The class of an error, and its sentence.
    refused: tuple[str, str] | None = None


# Built with this module, which is loaded late, rather than by two threads at once.
_about, _conversation = Decoder(_About), Decoder(WholeConversation)


@contextmanager
def read_confined(
    file: IO[bytes], max_bytes: int, timeout_seconds: float, folder: Path, max_conversations: int = MAX_CONVERSATIONS
) -> Iterator[Export]:
    """Give the content of an open exported file whose text has up to ``max_bytes``; a copy is in ``folder`` meanwhile.

    Its conversations can be iterated once; one file is imported at a time. Raises ImportsBusy, BodyTooLarge,
    MalformedBody, InvalidRequest.
    """
    limits = Limits(max(MIN_MEMORY_MB, MEMORY_PER_BYTE * max_bytes >> 20), timeout_seconds, OUTPUT_PER_BYTE * max_bytes)
    args = [str(max_bytes), str(max_conversations)]
    with TemporaryFile(dir=folder) as read, ExitStack() as leaving:
        if not _importing.acquire(timeout=WAIT_TIMEOUT_SECONDS):
            raise errors.ImportsBusy
        leaving.callback(_importing.release)
        try:
            read.writelines(confined(__name__, file, args, limits))
        except errors.ExtractionFailed as error:
            raise errors.InvalidRequest(str(error)) from error
        read.seek(0)
        about = _about.decode(read.readline())
        if about.refused is not None:
            kind, sentence = about.refused
            raise REFUSALS[kind](sentence)
        conversations = (_conversation.decode(line) for line in read)
        yield Export(conversations, about.documents, about.unreadable, about.notes, about.mended)


def work(file: IO[bytes], max_bytes: str, max_conversations: str) -> Iterator[bytes]:
    """Yield a line of JSON about a file, or about why it is refused, then one for each conversation."""
    try:
        export = read_export(file, int(max_bytes), int(max_conversations))
    except tuple(REFUSALS.values()) as error:
        yield encode(_About(refused=(type(error).__name__, str(error))))
        return
    yield encode(_About(export.documents, export.unreadable, export.notes, export.mended)) + b"\n"
    for one in export.conversations:
        yield encode(one) + b"\n"
