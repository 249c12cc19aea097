"""What goes into an archive: the documents and the conversations of some stores, one person's or everybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from rag_assistant.errors import ConversationNotFound
from rag_assistant.exchange.files import Archived
from rag_assistant.records.archive import ArchivedDocument, WholeConversation
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.documents.documents import DocumentStore

DOCUMENTS_AT_ONCE = 100


def archived_documents(documents: DocumentStore, path_of: Callable[[str], Path] | None) -> Iterator[Archived]:
    """Yield every document, the newest first, with its file where ``path_of`` tells where that is."""
    before: int | None = None
    while page := documents.page(DOCUMENTS_AT_ONCE, before):
        before = page[-1].id
        for one in page:
            stored = None if path_of is None else path_of(documents.file_of(one.id))
            yield ArchivedDocument(one.id, one.name, one.sha256, tuple(one.tags)), stored


def archived_conversations(store: ExchangeStore) -> Iterator[WholeConversation]:
    """Yield every conversation, the oldest first; what is deleted meanwhile is left out."""
    for conversation_id in store.ids():
        with suppress(ConversationNotFound):
            yield store.read(conversation_id)
