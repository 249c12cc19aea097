"""One answer in the making, and what making it needs of other packages."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from rag_assistant.answering.live import LiveTurn
from rag_assistant.answering.tools import Tools
from rag_assistant.answering.writer import AnswerWriter
from rag_assistant.conversations.viewed_history import ViewedHistory
from rag_assistant.llm.models import LanguageModels
from rag_assistant.retrieval.search import Retriever
from rag_assistant.runtime.telemetry.metrics import Metrics
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.notes import NoteStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.documents.documents import DocumentStore


class Dependencies(Struct, frozen=True):
    """What answering needs of other packages; ``stateless`` is the writer for answers that aren't stored."""

    conversations: ConversationManager
    turns: TurnStore
    history: ViewedHistory
    notes: NoteStore
    retriever: Retriever
    documents: DocumentStore
    # Draws a page of a document within some seconds.
    draw_page: Callable[[DocumentStore, int, int, float], bytes]
    tools: Tools
    models: LanguageModels
    writer: AnswerWriter
    stateless: AnswerWriter
    metrics: Metrics
    settings: Callable[[], Settings]


class Task(Struct, frozen=True):
    """One answer in the making: its turn, the settings with the turn's options, and the requests ``sent`` so far."""

    live: LiveTurn
    deps: Dependencies
    settings: Settings
    sent: list[dict[str, Any]] = field(default_factory=list)
