"""Whole conversations for export and import; the types are checked when an archive is read."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta, Struct, field

from rag_assistant.records.answers import Source
from rag_assistant.records.base import DATA_URL, Message, Number
from rag_assistant.records.conversations import MAX_NOTE_CHARS, Rating
from rag_assistant.records.questions import EVERYTHING, ConversationSearch, Scope

EndedStatus = Literal["completed", "stopped", "interrupted", "failed", "erased"]


class WholeAnswer(Struct, frozen=True):
    """Everything after a question: tool calls with their results, then the answer, if there is one."""

    messages: tuple[Message, ...] = ()
    status: EndedStatus = "completed"
    finished_at: datetime | None = None
    model: str | None = None
    sources: tuple[Source, ...] = ()
    history: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    error_type: str | None = None
    error_message: str | None = None


class WholeTurn(Struct, frozen=True):
    """A finished turn; ``others`` are its answers that aren't current, by version."""

    question: str
    answer: WholeAnswer
    created_at: datetime
    request: dict[str, Any] = field(default_factory=dict)
    pinned: bool = False
    excluded: bool = False
    purged: bool = False
    erased_at: datetime | None = None
    version: Number = 1
    others: dict[Number, WholeAnswer] = field(default_factory=dict)
    rating: Rating | None = None
    # Data URLs of the pictures attached to the question.
    images: tuple[Annotated[str, Meta(pattern=DATA_URL)], ...] = ()


class WholeSummary(Struct, frozen=True):
    """A summary of the turns in the runs ``covered``."""

    covered: Annotated[list[tuple[Number, Number]], Meta(min_length=1)]
    text: str
    written_by: str
    created_at: datetime


class Overrides(TypedDict, total=False):
    """Settings that a conversation overrides."""

    max_history_turns: Number | None
    history_strategy: Literal["window", "smart"]
    on_overflow: Literal["trim", "ask", "compact", "reset", "continue"]
    search_conversations: ConversationSearch
    notes: bool


class WholeConversation(Struct, frozen=True):
    """A conversation with all its turns, oldest first.

    Its ``id``, those of documents and the one in ``branched_from`` are those of its origin. ``key`` identifies a
    conversation imported from another product.
    """

    id: int
    title: str
    created_at: datetime
    updated_at: datetime
    turns: tuple[WholeTurn, ...]
    key: str | None = None
    # The id of the conversation it branched from, and the number of the turn before which it did.
    branched_from: tuple[int, Number] | None = None
    pinned: bool = False
    archived: bool = False
    overrides: Overrides = field(default_factory=lambda: Overrides())
    scope: Scope = EVERYTHING
    context_start: Number = 1
    earlier_starts: tuple[Number, ...] = ()
    view_start: Number = 1
    decided_until: Number = 0
    summary: WholeSummary | None = None

    @property
    def identity(self) -> str:
        """Return what identifies it in every installation: its key, or its creation time."""
        return self.key or f"created:{self.created_at.isoformat()}"


class ArchivedNote(Struct, frozen=True):
    """A note of an archive. ``turn`` has its conversation's id there, and its number."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_NOTE_CHARS)]
    created_at: datetime
    pinned: bool = False
    active: bool = True
    proposed: bool = False
    turn: tuple[int, Number] | None = None


class ArchivedDocument(Struct, frozen=True):
    """A document of an archive; its file, if included, is named by its ``sha256``. A person gave it its ``date``."""

    id: int
    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    tags: tuple[str, ...] = ()
    date: Annotated[str, Meta(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}\Z")] | None = None
