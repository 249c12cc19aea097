"""The request bodies of Anthropic's protocol, and the turns in them."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from rag_assistant.conversations.pictures import check_pictures
from rag_assistant.records import Message, with_pictures
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.web.request_bodies import field
from rag_assistant.web.routing import services
from rag_assistant.web.v1.bodies import ANTHROPIC_HINTS, HINTS, MAX_TOOLS, TOOLS, OpenAIBody
from rag_assistant.web.v1.parts import Lenient
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
