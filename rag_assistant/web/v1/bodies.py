"""The request bodies of OpenAI's protocol: which fields count, have no effect, or are refused by name."""

from collections.abc import Iterator, Mapping, Sequence
from pkgutil import get_data
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from msgspec.json import decode as from_json
from pydantic import BaseModel, Field

from rag_assistant.records import THOUGHTS
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.records.validation import spells_number
from rag_assistant.web.request_bodies import AnyQuestionBody, Strict, field
from rag_assistant.web.request_parsing import checked, json_object
from rag_assistant.web.v1 import parts

Body = TypeVar("Body", bound=Strict)

# OpenAI's minimum for a compaction.
MIN_THRESHOLD = 1000
# Values without effect, for which no field is refused.
NOTHING: tuple[Any, ...] = (None, False, [], {}, "none", "auto", {"type": "text"})
_FIELDS = from_json(get_data(str(__package__), "fields.json") or b"")
# Hints that only change how an answer is found: accepted, but listed under "ignored".
HINTS, ANTHROPIC_HINTS = tuple(_FIELDS["hints"]), tuple(_FIELDS["anthropic_hints"])
# Without these an answer would be wrong.
REFUSED: dict[str, str] = _FIELDS["refused"]
# Tools that another server would carry out: they are left out, and named.
HOSTED: list[str] = _FIELDS["hosted_tools"]
# What each model does; the last is for those that are projects.
DESCRIBED: dict[str, str] = _FIELDS["models"]
# How an answer is drawn: as they are, for the model's endpoint.
SAMPLING = ("frequency_penalty", "presence_penalty", "reasoning_effort", "seed", "top_p")


class ContextEdit(parts.Passed):
    """One way to make room: summarise above a number of tokens, or leave out older tool uses."""

    type: Literal["compaction", "clear_tool_uses_20250919"]
    compact_threshold: int | None = Field(None, ge=MIN_THRESHOLD)
    keep: parts.Kept | None = None


class ContextEdits(parts.Lenient):
    """Ways to make room."""

    edits: list[ContextEdit]


class OwnFields(Strict):
    """Our additions to OpenAI's fields."""

    retrieval: Literal["auto", "off"] = field("auto", "auto or off")


class StreamOptions(parts.Lenient):
    """What a stream carries besides the answer."""

    include_usage: bool | None = False


# An edit for Anthropic's own models, whose thoughts are not passed on.
THINKING_EDIT = "clear_thinking"
MAX_METADATA = 16
MAX_TOOLS = 128
MAX_STOPS = 4
TOOLS = f"a list of up to {MAX_TOOLS} functions; tools that another server carries out are left out"
TOOL_CHOICE = "none, auto, required, or the function to call"
FORMAT = "an object with a type: text, json_object or json_schema"
Choice = Literal["none", "auto", "required"]
Metadata = Annotated[dict[str, str], Field(max_length=MAX_METADATA)]
METADATA = f"an object of up to {MAX_METADATA} texts; conversation_id in it names a stored conversation, or is new"


class OpenAIBody(AnyQuestionBody):
    """The fields that the bodies share. ``ignored`` names those sent without effect."""

    hints: ClassVar[tuple[str, ...]] = HINTS
    # The field that has the answer's format.
    format_field: ClassVar[str] = "response_format"
    model: str = field(..., "the id of a model, as /v1/models lists them")
    metadata: Metadata | None = field(None, METADATA)
    temperature: float | None = field(None, "a number from 0 to 2", ge=0, le=2)
    top_p: float | None = field(None, "a number from 0 to 1", ge=0, le=1)
    stream: bool | None = field(False, "true or false")
    stream_options: StreamOptions | None = field(None, 'an object, such as {"include_usage": true}')
    parallel_tool_calls: bool | None = field(None, "true or false")
    context_management: list[ContextEdit] | ContextEdits | None = field(
        None, "a list of what makes room: compaction, clear_tool_uses_20250919; or an object with it as edits"
    )
    rag_assistant: OwnFields | None = field(None, 'an object: {"retrieval": "auto"}, or "off"')

    @staticmethod
    def is_foreign(tool: Mapping[str, Any]) -> bool:
        """Return whether another server would carry out a tool."""
        return tool.get("type", "function") in HOSTED

    def endpoint_fields(self) -> dict[str, Any]:
        """Return the fields for the model's endpoint in the shape of a chat."""
        raise NotImplementedError

    def as_fields(
        self, tools: Sequence[Any] | None, choice: Any, parallel: bool | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return fields of a chat with those that are given, and how the answer is drawn."""
        more = {name: getattr(self, name, None) for name in SAMPLING} | more
        if tools:
            more |= {"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel}
        return {name: as_sent(value) for name, value in more.items() if value is not None}

    @property
    def edits(self) -> dict[str, ContextEdit]:
        """The edits that make room, by type."""
        given = self.context_management or []
        return {edit.type: edit for edit in (given.edits if isinstance(given, ContextEdits) else given)}


class ChatBody(OpenAIBody):
    """The body of /v1/chat/completions."""

    hints: ClassVar[tuple[str, ...]] = (*HINTS, "store")
    messages: list[parts.ChatMessage] = field(
        ..., "a list of messages, each with a role and content of text; the last is the user's", min_length=1
    )
    max_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    max_completion_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    frequency_penalty: float | None = field(None, "a number from -2 to 2", ge=-2, le=2)
    presence_penalty: float | None = field(None, "a number from -2 to 2", ge=-2, le=2)
    reasoning_effort: str | None = field(None, "text, such as low")
    seed: int | None = field(None, "a whole number")
    tools: list[parts.ChatTool] | None = field(None, TOOLS, max_length=MAX_TOOLS)
    tool_choice: Choice | parts.ChatTool | None = field(None, TOOL_CHOICE)
    # What tools were before November 2023.
    functions: list[parts.Function] | None = field(None, TOOLS, max_length=MAX_TOOLS)
    function_call: Choice | parts.Function | None = field(None, TOOL_CHOICE)
    response_format: parts.AnswerFormat | None = field(None, FORMAT)
    stop: str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None = field(
        None, f"text, or a list of up to {MAX_STOPS} texts"
    )

    def endpoint_fields(self) -> dict[str, Any]:
        """Return the fields that go to the model's endpoint unchanged."""
        form = self.response_format if self.response_format and self.response_format.type != "text" else None
        old = [{"type": "function", "function": one.as_sent()} for one in self.functions or ()]
        named = self.function_call
        forced = {"type": "function", "function": named.as_sent()} if isinstance(named, parts.Function) else named
        parallel = False if old else self.parallel_tool_calls
        return self.as_fields(
            self.tools or old, self.tool_choice or forced, parallel, response_format=form, stop=self.stop or None
        )


class Item(parts.Lenient):
    """An item of a response's input: a message, a call or its output, a summary, or the id of an earlier message."""

    type: str | None = "message"
    id: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[parts.Part] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[parts.Part] | None = None
    encrypted_content: str | None = None


Input = Annotated[list[Item], Field(min_length=1)] | str
INPUT = "text, or a list of items such as messages; the last is the user's"


class ResponseBody(OpenAIBody):
    """The body of /v1/responses."""

    format_field: ClassVar[str] = "text"
    input: Input = field(..., INPUT)
    instructions: str | None = field(None, "text")
    previous_response_id: str | None = field(None, "the id of a stored response")
    store: bool | None = field(None, "true or false")
    reasoning: parts.Reasoning | None = field(None, 'an object, such as {"effort": "low"}')
    truncation: Literal["auto", "disabled"] | None = field(None, "auto, disabled, or null for what is set")
    max_output_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    tools: list[parts.ResponseTool] | None = field(None, TOOLS, max_length=MAX_TOOLS)
    tool_choice: Choice | parts.ResponseTool | None = field(None, TOOL_CHOICE)
    text: parts.TextOptions | None = field(None, f"an object with a format, {FORMAT}")

    def endpoint_fields(self) -> dict[str, Any]:
        """Return the fields for the model's endpoint in the shape of a chat, a named function in its own object."""
        tools = [_as_in_chat(one.as_sent(), "function") for one in self.tools or ()]
        choice = self.tool_choice
        form = self.text.format if self.text and self.text.format and self.text.format.type != "text" else None
        return self.as_fields(
            tools,
            _as_in_chat(choice.as_sent(), "function") if isinstance(choice, parts.ResponseTool) else choice,
            self.parallel_tool_calls,
            response_format=form and _as_in_chat(form.as_sent(), "json_schema"),
            reasoning_effort=self.reasoning and self.reasoning.effort,
        )


def as_sent(value: Any) -> Any:
    """Return a part of a body unchanged."""
    if isinstance(value, parts.Passed):
        return value.as_sent()
    return [as_sent(one) for one in value] if isinstance(value, list) else value


def _as_in_chat(part: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a body as a chat has it: what is beside its type in an object of its own."""
    inner = {key: value for key, value in part.items() if key != "type"}
    return {"type": part["type"]} | ({name: inner} if inner else {})


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
    """Return the request's body and the names of its fields without effect. Raises InvalidRequest, naming the field."""
    content = json_object()
    unneeded = {*getattr(model, "hints", ()), *REFUSED} - set(model.model_fields)
    for name, reason in REFUSED.items():
        nothing = (None, 1) if name == "n" else NOTHING
        if name in content and name in unneeded and content[name] not in nothing:
            raise InvalidRequest(f"{name} is not supported: {reason}.", param=name)
    ignored = sorted(name for name in unneeded - set(REFUSED) if content.get(name) is not None)
    if content.get("max_tokens") == -1:  # Some clients' word for no limit.
        content = {name: value for name, value in content.items() if name != "max_tokens"}
    if issubclass(model, OpenAIBody) and isinstance(tools := content.get("tools"), list):
        foreign = [n for n, one in enumerate(tools) if isinstance(one, dict) and model.is_foreign(one)]
        ignored += [f"tools[{n}]" for n in foreign]
        content = content | {"tools": [one for n, one in enumerate(tools) if n not in foreign]}
        if model is ResponseBody:  # Answered from the libraries whose ids its file_search has.
            searches = [one for one in content["tools"] if isinstance(one, dict) and one.get("type") == "file_search"]
            ids = [one for search in searches for one in search.get("vector_store_ids") or ()]
            if wrong := [one for one in ids if not spells_number(str(one))]:
                raise InvalidRequest(
                    f"vector_store_ids has {wrong[0]!r}; each must be the id of a library, "
                    "as /api/libraries lists them.",
                    param="tools",
                )
            rest = [one for one in content["tools"] if one not in searches]
            content = ({"library_ids": [int(one) for one in ids]} if ids else {}) | content | {"tools": rest}
    given = content.get("context_management")
    if isinstance(given, dict) and isinstance(edits := given.get("edits"), list):  # As Anthropic's clients have it.
        rest = [one for one in edits if not (isinstance(one, dict) and str(one.get("type")).startswith(THINKING_EDIT))]
        ignored += ["context_management.edits"] if len(rest) < len(edits) else []
        content = content | {"context_management": {"edits": rest}}
    body = checked(model, {name: value for name, value in content.items() if name not in unneeded})
    return body, [*ignored, *dict.fromkeys(_unread(body, content))]


def _unread(part: Any, given: Any, where: str = "") -> Iterator[str]:
    """Yield the fields of a body that none of its parts reads or passes on."""
    if isinstance(part, list) and isinstance(given, list):
        for one, sent in zip(part, given, strict=True):
            yield from _unread(one, sent, f"{where}[]")
    elif isinstance(part, BaseModel) and isinstance(given, dict) and not isinstance(part, parts.Passed):
        fields = {*type(part).model_fields, *(THOUGHTS if isinstance(part, parts.Thinking) else ())}
        for name, value in given.items():
            place = f"{where}.{name}" if where else name
            if name not in fields and where and value not in NOTHING and given.get("role") != "function":
                yield place
            yield from _unread(getattr(part, name, None), value, place)
