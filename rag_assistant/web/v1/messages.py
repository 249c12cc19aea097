"""Anthropic's protocol: its request bodies and the turns in them; an answer as a message, and its events."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from pydantic import Field

from rag_assistant.conversations.pictures import check_pictures
from rag_assistant.records import Event, Message, with_pictures
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.web.api.events import HEARTBEAT
from rag_assistant.web.errors import anthropic_error
from rag_assistant.web.request_bodies import field
from rag_assistant.web.routing import services
from rag_assistant.web.v1.answers import About, extension, finish_reason_of, tokens_of
from rag_assistant.web.v1.bodies import ANTHROPIC_HINTS, HINTS, MAX_TOOLS, TOOLS, OpenAIBody
from rag_assistant.web.v1.parts import Lenient, packed_thoughts
from rag_assistant.web.v1.reading import Sent, sent_along, with_thoughts

# The kinds of content by role.
TAKEN = {
    "system": ("text",),
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
}
# Not "custom": tools that Anthropic carries out, or whose form its models know.
OWN_TOOL = (None, "custom")
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
STOPPED = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
# Thoughts of a provider's own form are opaque.
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


class Source(Lenient):
    """A picture: its bytes, or an address."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class Block(Lenient):
    """A piece of a message."""

    type: str
    text: str | None = None
    source: Source | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    signature: str | None = None
    tool_use_id: str | None = None
    content: "str | list[Block] | None" = None
    is_error: bool | None = None


class ClaudeMessage(Lenient):
    """A message."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class ClaudeTool(Lenient):
    """A client's tool."""

    type: str | None = None
    name: str = Field(min_length=1)
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class ClaudeChoice(Lenient):
    """Which tool is to be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Output(Lenient):
    """How much the model thinks, and the form of the answer."""

    effort: str | None = None
    format: dict[str, Any] | None = None


class MessagesBody(OpenAIBody):
    """The body of /v1/messages."""

    hints: ClassVar[tuple[str, ...]] = (*HINTS, *ANTHROPIC_HINTS)
    format_field: ClassVar[str] = "output_config"
    messages: list[ClaudeMessage] = field(
        ..., "a list of messages, each with a role and content; the last is the user's", min_length=1
    )
    system: str | list[Block] | None = field(None, "text, or a list of blocks of text")
    max_tokens: int | None = field(None, "a whole number, 1 or more", ge=1)
    stop_sequences: Annotated[list[str], Field(max_length=4)] | None = field(None, "a list of up to 4 texts")
    tools: list[ClaudeTool] | None = field(None, TOOLS, max_length=MAX_TOOLS)
    tool_choice: ClaudeChoice | None = field(None, 'an object, such as {"type": "auto"}')
    output_config: Output | None = field(None, "an object with a format or an effort")

    @staticmethod
    def is_foreign(tool: Mapping[str, Any]) -> bool:
        """Return whether a tool is one that only Anthropic can offer."""
        return tool.get("type") not in OWN_TOOL

    def endpoint_fields(self) -> dict[str, Any]:
        """Return the fields for the model's endpoint in the shape of a chat."""
        form, choice = self.output_config and self.output_config.format, self.tool_choice
        named = choice and {"type": "function", "function": {"name": choice.name}}
        return self.as_fields(
            [_function(one) for one in self.tools or ()],
            choice and CHOICES.get(choice.type, named),
            not choice.disable_parallel_tool_use if choice and choice.disable_parallel_tool_use is not None else None,
            response_format=form
            and {"type": "json_schema", "json_schema": {"name": "answer", "schema": form.get("schema")}},
            stop=self.stop_sequences or None,
            reasoning_effort=self.output_config and self.output_config.effort,
        )


def _function(tool: ClaudeTool) -> dict[str, Any]:
    sent = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema, "strict": tool.strict}
    return {"type": "function", "function": {name: value for name, value in sent.items() if value is not None}}


def read_messages(body: MessagesBody) -> Sent:
    """Return the content of the messages. Raises InvalidRequest, which names what is not taken."""
    messages: list[Message] = []
    places: list[str] = []
    thoughts: list[tuple[int, str, str]] = []
    for n, one in enumerate(body.messages):
        blocks = _blocks(one.content, one.role, f"messages[{n}].content")
        for m, block in enumerate(blocks):
            if block.type == "thinking":
                thoughts.append((len(messages), f"messages[{n}].content[{m}]", block.signature or ""))
        messages += _messages_of(one.role, blocks, f"messages[{n}].content")
        places += [f"messages[{n}]"] * (len(messages) - len(places))
    ignored = with_thoughts(messages, thoughts)
    return sent_along(messages, [_text(_blocks(body.system or "", "system", "system"))], places, ignored=ignored)


def _blocks(content: str | Sequence[Block], role: str, where: str) -> Sequence[Block]:
    """Return the blocks of a message. Raises InvalidRequest, which names one that its role may not have."""
    if isinstance(content, str):
        return [Block(type="text", text=content)]
    for n, block in enumerate(content):
        if block.type not in TAKEN[role]:
            taken = ", ".join(TAKEN[role])
            place = f"{where}[{n}]"
            raise InvalidRequest(f"{place} is of the type {block.type}; here, {taken} are taken.", param=place)
    return content


def _text(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text or "" for block in blocks if block.type == "text")


def _messages_of(role: str, blocks: Sequence[Block], where: str) -> list[Message]:
    """Return a message in the form of a chat: results are messages of their own, before what is written beside them."""
    messages: list[Message] = []
    for n, block in enumerate(blocks):
        if block.type == "tool_result":
            text = _text(_blocks(block.content or "", "system", f"{where}[{n}].content"))
            text = f"Error: {text}" if block.is_error else text
            messages.append({"role": "tool", "tool_call_id": block.tool_use_id, "content": text})
    sources = [block.source or Source() for block in blocks if block.type == "image"]
    pictures = [one.url or f"data:{one.media_type};base64,{one.data}" for one in sources]
    if pictures:
        check_pictures(pictures, taken=services().settings.current.model_images, field=where)
    message: Message = {"role": role, "content": _text(blocks)}
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.input or {})}}
        for one in blocks
        if one.type == "tool_use"
    ]
    if calls:
        message |= {"content": message["content"] or None, "tool_calls": calls}
    if message["content"] or pictures or calls or not messages:
        messages.append(with_pictures(message, pictures))
    return messages


def message(data: Mapping[str, Any], about: About) -> dict[str, Any]:
    """Return a finished answer as a message."""
    texts = [{"type": "text", "text": data["answer"]}] if data["answer"] else []
    if packed := packed_thoughts(data):
        texts.append(THINKING | {"signature": packed})
    calls = [_call(one) | {"input": _input(one)} for one in data.get("tool_calls", ())]
    return _message(data, about, [*texts, *calls], STOPPED[finish_reason_of(data)])


def message_frames(events: Iterable[Event | None], about: About) -> Iterator[bytes]:
    """Yield the events of an answer as those of a message. An error ends the stream."""
    began = speaks = False
    for event in events:
        if event is None:
            yield _frame("ping") if began else HEARTBEAT
            continue
        if event.name in ("start", "token", "end") and not began:
            began = True
            yield _frame("message_start", message=_message({"answer": ""} | event.data, about, [], None))
        if event.name == "token":
            if not speaks:
                speaks = True
                yield _frame("content_block_start", index=0, content_block={"type": "text", "text": ""})
            yield _frame("content_block_delta", index=0, delta={"type": "text_delta", "text": event.data["text"]})
        elif event.name == "error":
            yield _frame(**anthropic_error(500, event.data["error"]))
        elif event.name == "end":
            if speaks:
                yield _frame("content_block_stop", index=0)
            if packed := packed_thoughts(event.data):
                yield _frame("content_block_start", index=int(speaks), content_block=THINKING)
                signed = {"type": "signature_delta", "signature": packed}
                yield _frame("content_block_delta", index=int(speaks), delta=signed)
                yield _frame("content_block_stop", index=int(speaks))
            for n, call in enumerate(event.data.get("tool_calls", ()), int(speaks) + bool(packed)):
                arguments = {"type": "input_json_delta", "partial_json": call["function"]["arguments"]}
                yield _frame("content_block_start", index=n, content_block=_call(call) | {"input": {}})
                yield _frame("content_block_delta", index=n, delta=arguments)
                yield _frame("content_block_stop", index=n)
            ended = {"stop_reason": STOPPED[finish_reason_of(event.data)], "stop_sequence": None}
            yield _frame("message_delta", delta=ended, usage=_usage(event.data), **extension(event.data, about))
            yield _frame("message_stop")


def _message(data: Mapping[str, Any], about: About, content: list[Any], stop_reason: str | None) -> dict[str, Any]:
    own = {"id": f"msg_{about.id}", "type": "message", "role": "assistant", "model": about.model, "content": content}
    return own | {"stop_reason": stop_reason, "stop_sequence": None, "usage": _usage(data)} | extension(data, about)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}


def _input(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"]
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {"arguments": arguments}  # The model wrote no JSON.


def _usage(data: Mapping[str, Any]) -> dict[str, int]:
    """Return an answer's token usage; ``input_tokens`` are those that the cache did not have."""
    prompt, answer, cached = tokens_of(data)
    counts = {"input_tokens": max(0, prompt - cached), "output_tokens": answer}
    return counts | {"cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}


def _frame(type: str, **fields: Any) -> bytes:  # noqa: A002 - the protocol's word
    return f"event: {type}\ndata: ".encode() + msgspec.json.encode({"type": type, **fields}) + b"\n\n"
