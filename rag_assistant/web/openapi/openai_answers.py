"""The answers of OpenAI's protocol as types: what a client there relies on, and what we add."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rag_assistant.web.openapi.turn_answers import EXACT, HistoryFigures, SearchData, SourceAnswer


@EXACT
class Told(TypedDict):
    """What we add to an answer."""

    conversation_id: int | None
    turn_id: int | None
    ignored: list[str]
    notice: NotRequired[str | None]
    history: NotRequired[HistoryFigures | None]
    search: NotRequired[SearchData | None]
    support: NotRequired[str]
    sources: NotRequired[list[SourceAnswer]]
    notes: NotRequired[list[str]]
    waiting: NotRequired[bool]


@EXACT
class Model(TypedDict):
    """A way of answering."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str


@EXACT
class Models(TypedDict):
    """The ways of answering."""

    object: Literal["list"]
    data: list[Model]


@EXACT
class UrlCitation(TypedDict):
    """Where an answer cites a source, and where that is shown."""

    start_index: int
    end_index: int
    url: str
    title: str


@EXACT
class Annotation(TypedDict):
    """A citation in a chat."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


@EXACT
class AssistantMessage(TypedDict):
    """The answer in a chat."""

    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[Annotation]


@EXACT
class Choice(TypedDict):
    """The one answer."""

    index: Literal[0]
    message: AssistantMessage
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"]


@EXACT
class Delta(TypedDict):
    """A piece of an answer in a chat."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    annotations: NotRequired[list[Annotation]]


@EXACT
class ChunkChoice(TypedDict):
    """A piece of the one answer."""

    index: Literal[0]
    delta: Delta
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"] | None


@EXACT
class CachedTokens(TypedDict):
    """Tokens that came from a cache."""

    cached_tokens: int


@EXACT
class ChatUsage(TypedDict):
    """What an answer cost."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


@EXACT
class ChatCompletion(TypedDict):
    """An answer in a chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    history_trimmed: bool
    rag_assistant: Told


@EXACT
class ChatChunk(TypedDict):
    """A piece of an answer in a chat."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: NotRequired[ChatUsage | None]
    history_trimmed: NotRequired[bool]
    rag_assistant: NotRequired[Told]


@EXACT
class Embedding(TypedDict):
    """The vector of a text, as numbers or as base64 of little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


@EXACT
class EmbeddingUsage(TypedDict):
    """What embedding cost; estimates."""

    prompt_tokens: int
    total_tokens: int


@EXACT
class Embeddings(TypedDict):
    """The vectors of texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


@EXACT
class ReasoningTokens(TypedDict):
    """Tokens of thoughts."""

    reasoning_tokens: int


@EXACT
class ResponseUsage(TypedDict):
    """What a response cost."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


@EXACT
class ResponseError(TypedDict):
    """Why a response failed."""

    code: str
    message: str


@EXACT
class IncompleteDetails(TypedDict):
    """Why a response is incomplete."""

    reason: str


@EXACT
class ResponseAnswer(TypedDict):
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


@EXACT
class InputItems(TypedDict):
    """What was asked."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str
    last_id: str
    has_more: bool


@EXACT
class DeletedResponse(TypedDict):
    """A response that was erased."""

    id: str
    object: Literal["response"]
    deleted: bool


@EXACT
class CompactionTold(TypedDict):
    """What we add to a compaction."""

    summary: str
    turns: int
    note: str
    ignored: list[str]


@EXACT
class CompactedHistory(TypedDict):
    """A compacted history (Open Responses, CompactResource)."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[dict[str, Any]]
    usage: ResponseUsage
    rag_assistant: CompactionTold


class ResponseEvent(TypedDict):
    """An event of a response; what else it has depends on its type."""

    type: str
    sequence_number: int
