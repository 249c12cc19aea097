"""The request bodies of OpenAI's protocol: which fields count, have no effect, or are refused by name."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rag_assistant.records.errors import InvalidRequest
from rag_assistant.web.request_bodies import AnyQuestionBody, Strict, field
from rag_assistant.web.request_parsing import checked, json_object

Body = TypeVar("Body", bound=Strict)

# OpenAI's minimum for a compaction.
MIN_THRESHOLD = 1000
# Values without effect, for which no field is refused.
NOTHING: tuple[Any, ...] = (None, False, [], {}, "none", "auto", {"type": "text"})
# Hints that only change how an answer is found: accepted, but listed under "ignored".
HINTS = (
    "chat_template_kwargs", "enable_thinking", "frequency_penalty", "include", "keep_alive", "logit_bias",
    "max_tool_calls", "min_p", "modalities", "models", "options", "parallel_tool_calls", "plugins", "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "provider", "reasoning",
    "reasoning_effort", "repeat_penalty", "repetition_penalty", "route", "safety_identifier", "seed", "service_tier",
    "think", "thinking", "top_k", "top_p", "transforms", "user", "verbosity", "web_search_options",
)  # fmt: skip
# Without these an answer would be wrong.
REFUSED = {
    "audio": "answers are text",
    "background": "answers are given while you wait; a stored one goes on when you leave",
    "conversation": "name a stored conversation in metadata.conversation_id",
    "function_call": "send tool_choice",
    "functions": "send tools",
    "logprobs": "this server does not have them",
    "moderation": "this server does not moderate",
    "n": "there is one answer to a question",
    "prompt": "stored prompts are not supported; send instructions",
    "top_logprobs": "this server does not have them",
}


class Lenient(BaseModel):
    """A part of a body: unknown fields are ignored, and types are not coerced."""

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
    """A chat message; other fields that clients add, such as those of our own answers, are dropped."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class Passed(BaseModel):
    """A part of a body that is passed to the model's endpoint unchanged, unknown fields included."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    def as_sent(self) -> dict[str, Any]:
        sent = ((name, value) for name, value in self if name in self.model_fields_set)
        return {name: value.as_sent() if isinstance(value, Passed) else value for name, value in sent}


class Function(Passed):
    """A client's function; the endpoint judges its schema."""

    name: str = Field(min_length=1)
    parameters: dict[str, Any] | None = None


class ChatTool(Passed):
    """A tool in a chat, or the one that is to be called."""

    type: Literal["function"]
    function: Function


class ResponseTool(Function):
    """A tool in a response, or the one that is to be called."""

    type: Literal["function"]


class AnswerFormat(Passed):
    """The format of an answer."""

    type: Literal["text", "json_object", "json_schema"]


class TextOptions(Lenient):
    """The format of a response; other fields are ignored."""

    format: AnswerFormat | None = None


class Kept(Lenient):
    """The number of tool uses to keep."""

    type: Literal["tool_uses"]
    value: int = Field(ge=0)


class ContextEdit(Passed):
    """One way to make room: summarise above a number of tokens, or leave out older tool uses."""

    type: Literal["compaction", "clear_tool_uses_20250919"]
    compact_threshold: int | None = Field(None, ge=MIN_THRESHOLD)
    keep: Kept | None = None

    @property
    def kept_uses(self) -> int:
        """The number of tool uses to keep; Anthropic's default where the body has none."""
        return self.keep.value if self.keep else 3


class ContextEdits(Lenient):
    """Ways to make room."""

    edits: list[ContextEdit]


class OwnFields(Strict):
    """Our additions to OpenAI's fields."""

    retrieval: Literal["auto", "off"] = field("auto", "auto or off")


class StreamOptions(Lenient):
    """What a stream carries besides the answer."""

    include_usage: bool | None = False


MAX_METADATA = 16
MAX_TOOLS = 128
MAX_STOPS = 4
TOOLS = f"a list of up to {MAX_TOOLS} functions; tools that a server carries out are not taken"
TOOL_CHOICE = "none, auto, required, or the function to call"
FORMAT = "an object with a type: text, json_object or json_schema"
Choice = Literal["none", "auto", "required"]
Metadata = Annotated[dict[str, str], Field(max_length=MAX_METADATA)]
METADATA = f"an object of up to {MAX_METADATA} texts; conversation_id in it names a stored conversation, or is new"


class OpenAIBody(AnyQuestionBody):
    """The fields that the bodies share. ``ignored`` names those sent without effect."""

    hints: ClassVar[tuple[str, ...]] = HINTS
    model: str = field(..., "the id of a model, as /v1/models lists them")
    metadata: Metadata | None = field(None, METADATA)
    temperature: float | None = field(None, "a number from 0 to 2", ge=0, le=2)
    stream: bool | None = field(False, "true or false")
    stream_options: StreamOptions | None = field(None, 'an object, such as {"include_usage": true}')
    parallel_tool_calls: bool | None = field(None, "true or false")
    context_management: list[ContextEdit] | ContextEdits | None = field(
        None, "a list of what makes room: compaction, clear_tool_uses_20250919; or an object with it as edits"
    )
    rag_assistant: OwnFields | None = field(None, 'an object: {"retrieval": "auto"}, or "off"')

    @property
    def edits(self) -> dict[str, ContextEdit]:
        """The edits that make room, by type."""
        given = self.context_management or []
        return {edit.type: edit for edit in (given.edits if isinstance(given, ContextEdits) else given)}


class ChatBody(OpenAIBody):
    """The body of /v1/chat/completions."""

    hints: ClassVar[tuple[str, ...]] = (*HINTS, "store")
    messages: list[ChatMessage] = field(
        ..., "a list of messages, each with a role and content of text; the last is the user's", min_length=1
    )
    max_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    max_completion_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    tools: list[ChatTool] | None = field(None, TOOLS, max_length=MAX_TOOLS)
    tool_choice: Choice | ChatTool | None = field(None, TOOL_CHOICE)
    response_format: AnswerFormat | None = field(None, FORMAT)
    stop: str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None = field(
        None, f"text, or a list of up to {MAX_STOPS} texts"
    )

    def endpoint_fields(self) -> dict[str, Any]:
        """Return the fields that go to the model's endpoint unchanged."""
        form = self.response_format if self.response_format and self.response_format.type != "text" else None
        return _sent(self, self.tools, self.tool_choice, response_format=form, stop=self.stop or None)


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
    tools: list[ResponseTool] | None = field(None, TOOLS, max_length=MAX_TOOLS)
    tool_choice: Choice | ResponseTool | None = field(None, TOOL_CHOICE)
    text: TextOptions | None = field(None, f"an object with a format, {FORMAT}")

    def endpoint_fields(self) -> dict[str, Any]:
        """Return the fields for the model's endpoint in the shape of a chat, a named function in its own object."""
        tools = [_as_in_chat(one, "function") for one in self.tools or ()]
        choice = self.tool_choice
        form = self.text.format if self.text and self.text.format and self.text.format.type != "text" else None
        return _sent(
            self,
            tools,
            _as_in_chat(choice, "function") if isinstance(choice, ResponseTool) else choice,
            response_format=form and _as_in_chat(form, "json_schema"),
        )


def _sent(body: OpenAIBody, tools: Sequence[Any] | None, choice: Any, **more: Any) -> dict[str, Any]:
    if tools:
        more |= {"tools": tools, "tool_choice": choice, "parallel_tool_calls": body.parallel_tool_calls}
    return {name: as_sent(value) for name, value in more.items() if value is not None}


def as_sent(value: Any) -> Any:
    """Return a part of a body unchanged."""
    if isinstance(value, Passed):
        return value.as_sent()
    return [as_sent(one) for one in value] if isinstance(value, list) else value


def _as_in_chat(part: Passed, name: str) -> dict[str, Any]:
    inner = part.as_sent()
    kind = inner.pop("type")
    return {"type": kind} | ({name: inner} if inner else {})


class CompactBody(Strict):
    """The body of /v1/responses/compact."""

    hints: ClassVar[tuple[str, ...]] = (*HINTS, "store", "metadata")
    model: str = field(..., "the id of a model, as /v1/models lists them")
    input: Input | None = field(None, INPUT)
    instructions: str | None = field(None, "text")
    previous_response_id: str | None = field(None, "the id of a stored response")


MAX_INPUTS = 256
EMBEDDING_INPUT = (
    f"text, or a list of 1 to {MAX_INPUTS} texts; tokens are not accepted (LangChain: check_embedding_ctx_length=False)"
)
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
    """Return the request's body and the names of its fields without effect.

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
    return value in NOTHING
