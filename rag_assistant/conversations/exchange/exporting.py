"""What goes into an archive: the documents and the conversations of some stores, one person's or everybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import IO

from rag_assistant.conversations.exchange.files import Archived
from rag_assistant.records import Document
from rag_assistant.records.archive import ArchivedDocument, WholeConversation
from rag_assistant.records.errors import ConversationNotFound, DocumentNotFound, FileMissing
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.documents.documents import DocumentStore

# Opens the file of a document by its id; gives it with the document as it is then.
OpenFile = Callable[[int], tuple[Document, IO[bytes]]]
DOCUMENTS_AT_ONCE = 100


def archived_documents(documents: DocumentStore, open_file: OpenFile | None) -> Iterator[Archived]:
    """Yield every document, the newest first; with ``open_file``, together with its file as long as that is there.

    What is deleted meanwhile is left out.
    """
    before: int | None = None
    while page := documents.page(DOCUMENTS_AT_ONCE, before):
        before = page[-1].id
        for one in page:
            with suppress(DocumentNotFound):
                document, opened = _with_file(one, open_file)
                with opened as file:
                    yield ArchivedDocument(document.id, document.name, document.sha256, document.tags), file


def _with_file(
    document: Document, open_file: OpenFile | None
) -> tuple[Document, AbstractContextManager[IO[bytes] | None]]:
    """Return a document as it is now, with its file where that is wanted and there. Raises DocumentNotFound."""
    if open_file is not None:
        with suppress(FileMissing):
            return open_file(document.id)
    return document, nullcontext()


def archived_conversations(store: ExchangeStore) -> Iterator[WholeConversation]:
    """Yield every conversation, the oldest first; what is deleted meanwhile is left out."""
    for conversation_id in store.ids():
        with suppress(ConversationNotFound):
            yield store.read(conversation_id)
