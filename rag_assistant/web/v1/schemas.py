"""The answers of OpenAI's protocol: our additions in full, the rest as OpenAI describes it."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from rag_assistant.records.answers import HistoryFigures, SearchData
from rag_assistant.records.views import SourceAnswer


class Told(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our additions to an answer."""

    conversation_id: int | None
    turn_id: int | None
    ignored: list[str]
    notice: str | UnsetType | None = UNSET
    history: HistoryFigures | UnsetType | None = UNSET
    search: SearchData | UnsetType | None = UNSET
    support: str | UnsetType = UNSET
    sources: list[SourceAnswer] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    waiting: bool | UnsetType = UNSET
    answered_by: str | UnsetType | None = UNSET
    context_management: dict[str, list[dict[str, Any]]] | UnsetType = UNSET


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way of answering."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str
    context_length: int | None


class ChatCompletion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]
    history_trimmed: bool
    rag_assistant: Told


class ChatChunk(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chunk of a chat completion."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any] | UnsetType | None = UNSET
    history_trimmed: bool | UnsetType = UNSET
    rag_assistant: Told | UnsetType = UNSET


class MessageAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of Anthropic's protocol."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]]
    stop_reason: Literal["end_turn", "max_tokens", "tool_use", "refusal"] | None
    stop_sequence: None
    usage: dict[str, int]
    history_trimmed: bool
    rag_assistant: Told


class MessageEvent(Struct, frozen=True, kw_only=True):
    """An event of a message; its other fields depend on its type."""

    type: str


class ResponseAnswer(Struct, frozen=True, kw_only=True):
    """A response (Open Responses, ResponseResource); the fields not listed have fixed values."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]
    incomplete_details: dict[str, Any] | None
    error: dict[str, Any] | None
    model: str
    instructions: str | None
    previous_response_id: str | None
    output: list[dict[str, Any]]
    truncation: Literal["auto", "disabled"]
    max_output_tokens: int | None
    temperature: float
    metadata: dict[str, str]
    store: bool
    usage: dict[str, Any] | None
    history_trimmed: bool
    rag_assistant: Told


class CompactionTold(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our additions to a compaction."""

    summary: str
    turns: int
    note: str
    ignored: list[str]


class CompactedHistory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A compacted history (Open Responses, CompactResource)."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[dict[str, Any]]
    usage: dict[str, Any]
    rag_assistant: CompactionTold


class ResponseEvent(Struct, frozen=True, kw_only=True):
    """An event of a response; its other fields depend on its type."""

    type: str
    sequence_number: int
