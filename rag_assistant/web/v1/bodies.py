"""The bodies of OpenAI's protocol: what counts here, what is taken without effect, and what is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rag_assistant.history import OverflowChoice
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.web.request_bodies import (
    DOCUMENT_IDS,
    HISTORY_LIMIT,
    MAX_DOCUMENT_IDS,
    MAX_TAGS,
    ONE_OF_OVERFLOW,
    TAGS,
    Id,
    Strict,
    Tag,
    field,
)
from rag_assistant.web.request_parsing import checked, json_object

Body = TypeVar("Body", bound=Strict)

# Values that ask for nothing, so that no field is refused for them.
NOTHING: tuple[Any, ...] = (None, False, [], {}, "none", "auto", {"type": "text"})
# Hints that change no more than how an answer is found: taken, not followed, and named under "ignored".
HINTS = (
    "frequency_penalty", "include", "logit_bias", "min_p", "modalities", "parallel_tool_calls", "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
    "reasoning_effort", "repeat_penalty", "repetition_penalty", "safety_identifier", "seed", "service_tier", "thinking",
    "top_k", "top_p", "user", "verbosity",
)  # fmt: skip
OWN_TOOLS = (
    "this server's models call this server's own tools; use the model rag-assistant-tools for them, and leave tools of "
    "your own out"
)
# What an answer would be wrong without.
REFUSED = {
    "audio": "answers are text",
    "background": "answers are given while you wait; a stored one goes on when you leave",
    "conversation": "name a stored conversation in metadata.conversation_id",
    "function_call": OWN_TOOLS,
    "functions": OWN_TOOLS,
    "logprobs": "this server does not have them",
    "max_tool_calls": "a model may call tools eight times for one answer",
    "moderation": "this server does not moderate",
    "n": "there is one answer to a question",
    "prompt": "stored prompts are not supported; send instructions",
    "response_format": "answers are text; no schema is enforced",
    "stop": "answers are not cut at words",
    "text": "answers are text; no schema is enforced",
    "tool_choice": OWN_TOOLS,
    "tools": OWN_TOOLS,
    "top_logprobs": "this server does not have them",
    "web_search_options": "the documents of this server are searched, and nothing else",
}


class Lenient(BaseModel):
    """A part of a body: unknown fields count for nothing, types are not bent."""

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class ImageUrl(Lenient):
    """Where a picture is: in a data URL."""

    url: str


class Part(Lenient):
    """A piece of a message. What is neither text nor a picture is refused when the message is read."""

    type: str
    text: str | None = None
    refusal: str | None = None
    # In a chat an object, in a response the address itself.
    image_url: ImageUrl | str | None = None


class CalledFunction(Lenient):
    """The function that an earlier message called."""

    name: str
    arguments: str = "{}"


class Call(Lenient):
    """A call of a tool in an earlier message."""

    id: str | None = None
    function: CalledFunction


class ChatMessage(Lenient):
    """A message of a chat; what else clients put into it, such as what an answer of ours had, is left out."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class StreamOptions(Lenient):
    """What a stream has besides the answer."""

    include_usage: bool | None = False


MAX_METADATA = 16
Metadata = Annotated[dict[str, str], Field(max_length=MAX_METADATA)]
METADATA = f"an object of up to {MAX_METADATA} texts; conversation_id in it names a stored conversation, or is new"


class OpenAIBody(Strict):
    """What the bodies have in common. ``ignored`` are the fields that were sent and have no effect."""

    hints: ClassVar[tuple[str, ...]] = HINTS
    model: str = field(..., "the id of a model, as /v1/models lists them")
    metadata: Metadata | None = field(None, METADATA)
    temperature: float | None = field(None, "a number from 0 to 2", ge=0, le=2)
    stream: bool | None = field(False, "true or false")
    stream_options: StreamOptions | None = field(None, 'an object, such as {"include_usage": true}')
    max_history_turns: int | None = field(None, HISTORY_LIMIT, ge=0)
    on_overflow: OverflowChoice | None = field(None, f"{ONE_OF_OVERFLOW}, or null for what is set")
    document_ids: list[Id] | None = field(None, DOCUMENT_IDS, min_length=1, max_length=MAX_DOCUMENT_IDS)
    tags: list[Tag] | None = field(None, f"{TAGS}, or null for all documents", min_length=1, max_length=MAX_TAGS)


class ChatBody(OpenAIBody):
    """The body of /v1/chat/completions."""

    hints: ClassVar[tuple[str, ...]] = (*HINTS, "store")
    messages: list[ChatMessage] = field(
        ..., "a list of messages, each with a role and content of text; the last is the user's", min_length=1
    )
    max_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    max_completion_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)


class Item(Lenient):
    """An item of a response's input: a message, a call or its output, a summary, or the id of an earlier message."""

    type: str | None = "message"
    id: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[Part] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[Part] | None = None
    encrypted_content: str | None = None


Input = Annotated[list[Item], Field(min_length=1)] | str
INPUT = "text, or a list of items such as messages; the last is the user's"


class ResponseBody(OpenAIBody):
    """The body of /v1/responses."""

    input: Input = field(..., INPUT)
    instructions: str | None = field(None, "text")
    previous_response_id: str | None = field(None, "the id of a stored response")
    store: bool | None = field(None, "true or false")
    truncation: Literal["auto", "disabled"] | None = field(None, "auto, disabled, or null for what is set")
    max_output_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)


class CompactBody(Strict):
    """The body of /v1/responses/compact."""

    hints: ClassVar[tuple[str, ...]] = (*HINTS, "store", "metadata")
    model: str = field(..., "the id of a model, as /v1/models lists them")
    input: Input | None = field(None, INPUT)
    instructions: str | None = field(None, "text")
    previous_response_id: str | None = field(None, "the id of a stored response")


MAX_INPUTS = 256
EMBEDDING_INPUT = f"text, or a list of 1 to {MAX_INPUTS} texts; tokens are not accepted"
InputText = Annotated[str, Field(min_length=1)]


class EmbeddingsBody(Strict):
    """The body of /v1/embeddings."""

    hints: ClassVar[tuple[str, ...]] = ("user",)
    model: str = field(..., "rag-assistant-embeddings, or the embedding model's own name")
    input: InputText | Annotated[list[InputText], Field(min_length=1, max_length=MAX_INPUTS)] = field(
        ..., EMBEDDING_INPUT
    )
    encoding_format: Literal["float", "base64"] | None = field("float", "float or base64")
    dimensions: int | None = field(None, "left out, or as many as the embedding model has", ge=1)


def read_openai(model: type[Body]) -> tuple[Body, list[str]]:
    """Return the request's body, and the names of the fields in it that have no effect.

    Raises InvalidRequest, which names the field.
    """
    content = json_object()
    unneeded = {*getattr(model, "hints", ()), *REFUSED} - set(model.model_fields)
    for name, reason in REFUSED.items():
        if name in content and name in unneeded and not _asks_for_nothing(name, content[name]):
            raise InvalidRequest(f"{name} is not supported: {reason}.", param=name)
    ignored = sorted(name for name in unneeded - set(REFUSED) if content.get(name) is not None)
    return checked(model, {name: value for name, value in content.items() if name not in unneeded}), ignored


def _asks_for_nothing(name: str, value: Any) -> bool:
    if name == "n":
        return value in (None, 1)
    if name == "text" and isinstance(value, dict):
        return value.get("format") in NOTHING
    return value in NOTHING
