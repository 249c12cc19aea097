"""What an answer is made with: the stores, the search, the model, the tools, and who measures it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from rag_assistant.answering.overflow import OverflowHandling
    from rag_assistant.answering.search import DocumentSearch
    from rag_assistant.answering.tools import Tools
    from rag_assistant.answering.writer import AnswerWriter
    from rag_assistant.conversations.viewed_history import ViewedHistory
    from rag_assistant.llm.models import LanguageModels
    from rag_assistant.runtime.telemetry.observer import Observer
    from rag_assistant.settings.schema import Settings
    from rag_assistant.storage.conversations.conversations import ConversationManager
    from rag_assistant.storage.conversations.turns import TurnStore


class Dependencies(Struct, frozen=True):
    """What an answer needs of the other rooms; ``unkept`` is the writer of those that are not kept."""

    conversations: ConversationManager
    turns: TurnStore
    history: ViewedHistory
    search: DocumentSearch
    overflow: OverflowHandling
    tools: Tools
    models: LanguageModels
    writer: AnswerWriter
    unkept: AnswerWriter
    observer: Observer
    settings: Callable[[], Settings]
