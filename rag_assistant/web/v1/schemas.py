"""The answers of OpenAI's protocol: what a client there relies on, and what we add."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from rag_assistant.records.answers import HistoryFigures, SearchData
from rag_assistant.records.views import SourceAnswer


class Told(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What we add to an answer."""

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


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way of answering."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str


class Models(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ways of answering."""

    object: Literal["list"]
    data: list[Model]


class UrlCitation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an answer cites a source, and where that is shown."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A citation in a chat."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class AssistantMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer in a chat."""

    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[Annotation]


class Choice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one answer."""

    index: Literal[0]
    message: AssistantMessage
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"]


class Delta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of an answer in a chat."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    annotations: list[Annotation] | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of the one answer."""

    index: Literal[0]
    delta: Delta
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"] | None


class CachedTokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens that came from a cache."""

    cached_tokens: int


class ChatUsage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer cost."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class ChatCompletion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer in a chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    history_trimmed: bool
    rag_assistant: Told


class ChatChunk(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of an answer in a chat."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: ChatUsage | UnsetType | None = UNSET
    history_trimmed: bool | UnsetType = UNSET
    rag_assistant: Told | UnsetType = UNSET


class Embedding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The vector of a text, as numbers or as base64 of little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What embedding cost; estimates."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The vectors of texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


class ReasoningTokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens of thoughts."""

    reasoning_tokens: int


class ResponseUsage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a response cost."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class ResponseError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a response failed."""

    code: str
    message: str


class IncompleteDetails(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a response is incomplete."""

    reason: str


class ResponseAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A response (Open Responses, ResponseResource)."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]
    incomplete_details: IncompleteDetails | None
    error: ResponseError | None
    model: str
    instructions: str | None
    previous_response_id: str | None
    output: list[dict[str, Any]]
    truncation: Literal["auto", "disabled"]
    max_output_tokens: int | None
    temperature: float
    metadata: dict[str, str]
    store: bool
    usage: ResponseUsage | None
    background: bool
    frequency_penalty: float
    max_tool_calls: None
    parallel_tool_calls: bool
    presence_penalty: float
    prompt_cache_key: None
    reasoning: None
    safety_identifier: None
    service_tier: str
    text: dict[str, Any]
    tool_choice: str
    tools: list[dict[str, Any]]
    top_logprobs: int
    top_p: float
    user: None
    history_trimmed: bool
    rag_assistant: Told


class InputItems(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was asked."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str
    last_id: str
    has_more: bool


class DeletedResponse(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A response that was erased."""

    id: str
    object: Literal["response"]
    deleted: bool


class CompactionTold(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What we add to a compaction."""

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
    usage: ResponseUsage
    rag_assistant: CompactionTold


class ResponseEvent(Struct, frozen=True, kw_only=True):
    """An event of a response; what else it has depends on its type."""

    type: str
    sequence_number: int
