"""What goes into an archive: the documents and the conversations of some stores, one person's or everybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import IO

from rag_assistant.errors import ConversationNotFound, FileMissing
from rag_assistant.exchange.files import Archived
from rag_assistant.records.archive import ArchivedDocument, WholeConversation
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.documents.documents import DocumentStore

# Opens the file of a document by its id.
OpenFile = Callable[[int], AbstractContextManager[IO[bytes]]]
DOCUMENTS_AT_ONCE = 100


def archived_documents(documents: DocumentStore, open_file: OpenFile | None) -> Iterator[Archived]:
    """Yield every document, the newest first; with ``open_file``, together with its file as long as that is there."""
    before: int | None = None
    while page := documents.page(DOCUMENTS_AT_ONCE, before):
        before = page[-1].id
        for one in page:
            archived = ArchivedDocument(one.id, one.name, one.sha256, tuple(one.tags))
            try:
                with open_file(one.id) if open_file is not None else nullcontext() as file:
                    yield archived, file
            except FileMissing:
                yield archived, None


def archived_conversations(store: ExchangeStore) -> Iterator[WholeConversation]:
    """Yield every conversation, the oldest first; what is deleted meanwhile is left out."""
    for conversation_id in store.ids():
        with suppress(ConversationNotFound):
            yield store.read(conversation_id)
