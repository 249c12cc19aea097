"""Read an exported file in a sandboxed process, like every potentially hostile file.

The process prints a line of JSON about the file, then one for each conversation.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from msgspec import Struct
from msgspec.json import Decoder, encode

from rag_assistant.conversations.exchange.files import read_export
from rag_assistant.conversations.exchange.products import MAX_CONVERSATIONS, Export
from rag_assistant.extraction.sandbox_process import Limits, confined
from rag_assistant.records.archive import ArchivedDocument, ArchivedNote, WholeConversation
from rag_assistant.records.errors import BodyTooLarge, ExtractionFailed, ImportsBusy, InvalidRequest, MalformedBody

# Python objects take several times as much as their text; and branches repeat earlier messages.
MIN_MEMORY_MB, MEMORY_PER_BYTE, OUTPUT_PER_BYTE = 2048, 8, 4
WAIT_TIMEOUT_SECONDS = 30.0
REFUSALS = {kind.__name__: kind for kind in (BodyTooLarge, MalformedBody, InvalidRequest)}

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
            raise ImportsBusy
        leaving.callback(_importing.release)
        try:
            read.writelines(confined(__name__, file, args, limits))
        except ExtractionFailed as error:
            raise InvalidRequest(str(error)) from error
        read.seek(0)
        about = _about.decode(read.readline())
        if about.refused is not None:
            kind, sentence = about.refused
            raise REFUSALS[kind](sentence)
        conversations = (_conversation.decode(line) for line in read)
        yield Export(conversations, about.documents, about.unreadable, about.notes, about.mended)


def work(file: IO[bytes], max_bytes: str, max_conversations: str) -> Iterator[bytes]:
    """Yield the content of a file, or why it is refused."""
    try:
        export = read_export(file, int(max_bytes), int(max_conversations))
    except tuple(REFUSALS.values()) as error:
        yield encode(_About(refused=(type(error).__name__, str(error))))
        return
    yield encode(_About(export.documents, export.unreadable, export.notes, export.mended)) + b"\n"
    for one in export.conversations:
        yield encode(one) + b"\n"
