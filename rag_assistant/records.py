"""The plain records that every layer passes to the next.

Nothing here knows Flask, SQL or a model. A record is frozen: who wants another value makes another record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

# What goes to the model and nothing else: a dict in the OpenAI chat format.
Message = dict[str, Any]

TurnStatus = Literal["running", "completed", "stopped", "interrupted", "failed"]
# What an id or a position can be at most in every database that we keep them in.
LARGEST_NUMBER = 2**31 - 1

DocumentState = Literal["queued", "reading", "embedding", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class Unset:
    """The type of ``UNSET``: "nobody said anything", where ``None`` already means "no limit"."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Question:
    """One question as a caller asked it, checked for form but not yet accepted."""

    text: str
    conversation_id: int | None = None
    max_history_turns: int | Unset | None = UNSET
    document_ids: tuple[int, ...] = ()
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its counters, so that no figure needs a count over its messages."""

    id: int
    title: str
    created_at: datetime
    updated_at: datetime
    turns: int
    visible_turns: int
    visible_messages: int
    max_history_turns: int | Unset | None = UNSET


@dataclass(frozen=True, slots=True)
class Turn:
    """A question with its answer and how the answer ended."""

    id: int
    conversation_id: int
    number: int
    status: TurnStatus
    question: str
    answer: str
    created_at: datetime
    finished_at: datetime | None = None
    max_history_turns: int | Unset | None = UNSET
    document_ids: tuple[int, ...] = ()
    history: dict[str, Any] | None = None
    sources: tuple[Source, ...] = ()
    usage: dict[str, Any] | None = None
    model: str | None = None
    error_type: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A completed turn as the window needs it: its place in the conversation and its messages."""

    number: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the library; ``state`` says how far it has come, ``reason`` why it failed."""

    id: int
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    state: DocumentState
    reason: str | None
    chunks: int
    embedded: int
    pages: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a document; ``page_starts`` are character offsets into it, empty where there are no pages."""

    text: str
    media_type: str
    page_starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: ``text`` is exactly ``document text[start:end]``, in characters."""

    position: int
    start: int
    end: int
    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was retrieved, with its place in its document and its score (0 to 1, higher is better)."""

    chunk_id: int
    document_id: int
    document: str
    start: int
    end: int
    text: str
    page: int | None
    score: float


@dataclass(frozen=True, slots=True)
class Source:
    """A passage shown under an answer as number ``n``; ``cited`` when the answer refers to ``[n]``."""

    n: int
    document_id: int
    document: str
    page: int | None
    start: int
    end: int
    text: str
    score: float
    cited: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the source as it is kept and shown."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A piece of what a model streams: text, or the closing figures."""

    text: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an answer: ``state``, ``start``, ``token``, ``end`` or ``error``.

    ``position`` is the number of characters of the answer shown once this event is read; only ``start`` and
    ``token`` carry one, and a reader who comes back names the last one it saw.
    """

    name: Literal["state", "start", "token", "end", "error"]
    data: dict[str, Any] = field(default_factory=dict)
    position: int | None = None
