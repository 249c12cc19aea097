"""Whole conversations, as they are exported and imported: with every turn, and what people made of them.

The types are checked when an archive is read.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta, Struct, field

from rag_assistant.records.answers import Source
from rag_assistant.records.base import DATA_URL, MAX_INT32, Message
from rag_assistant.records.conversations import Rating
from rag_assistant.records.questions import EVERYTHING, ConversationSearch, Scope

# The number of a turn or a version; also where a view begins, which may be behind the last turn.
Number = Annotated[int, Meta(ge=0, le=MAX_INT32)]
EndedStatus = Literal["completed", "stopped", "interrupted", "failed", "erased"]


class WholeAnswer(Struct, frozen=True):
    """All that was said behind a question: tool calls with their results, then the answer, if there is one."""

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
    """A turn that is over; ``others`` are its answers that do not stand in it, by their version."""

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
    # Data URLs of the pictures beside the question.
    images: tuple[Annotated[str, Meta(pattern=DATA_URL)], ...] = ()


class WholeSummary(Struct, frozen=True):
    """A summary, with the runs of turns ``covered`` for which it stands."""

    covered: Annotated[list[tuple[Number, Number]], Meta(min_length=1)]
    text: str
    written_by: str
    created_at: datetime


class Overrides(TypedDict, total=False):
    """What a conversation decides for itself."""

    max_history_turns: Number | None
    history_strategy: Literal["window", "smart"]
    on_overflow: Literal["trim", "ask", "compact", "reset", "continue"]
    search_conversations: ConversationSearch
    notes: bool


class WholeConversation(Struct, frozen=True):
    """A conversation with all its turns, the first one first.

    ``id`` and the ids of documents are those of where it comes from; so is that in ``branched_from``. ``key`` tells it
    from all others that were imported, where it comes from another product.
    """

    id: int
    title: str
    created_at: datetime
    updated_at: datetime
    turns: tuple[WholeTurn, ...]
    key: str | None = None
    # The id of the conversation from which it branched off, and the number of the turn before which it did.
    branched_from: tuple[int, Number] | None = None
    pinned: bool = False
    archived: bool = False
    overrides: Overrides = field(default_factory=lambda: Overrides())
    scope: Scope = EVERYTHING
    context_start: Number = 1
    view_start: Number = 1
    decided_until: Number = 0
    summary: WholeSummary | None = None

    @property
    def identity(self) -> str:
        """Return what it has in common with itself elsewhere: its key, or the moment at which it was made."""
        return self.key or f"created:{self.created_at.isoformat()}"


class ArchivedNote(Struct, frozen=True):
    """A note of an archive. ``turn`` has the id of its conversation there, and its number."""

    text: str
    created_at: datetime
    pinned: bool = False
    active: bool = True
    turn: tuple[int, Number] | None = None


class ArchivedDocument(Struct, frozen=True):
    """A document of an archive; its file, if it came along, lies there under its ``sha256``."""

    id: int
    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    tags: tuple[str, ...] = ()
