"""The parts of the bodies in OpenAI's protocol: messages, tools and formats, each read or passed on; and thoughts
that come back packed.
"""

import base64
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from rag_assistant.llm.tool_calls import thoughts_in
from rag_assistant.records import THOUGHTS, Message


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


class Thinking(BaseModel):
    """A part of an earlier message that may have THOUGHTS; other unknown fields are ignored."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    @property
    def thoughts(self) -> dict[str, Any]:
        """The provider's own fields, unchanged."""
        return {name: value for name, value in (self.model_extra or {}).items() if name in THOUGHTS}


class CalledFunction(Thinking):
    """The function that an earlier message called."""

    name: str
    arguments: str = "{}"


class Call(Thinking):
    """A call of a tool in an earlier message."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(Thinking):
    """A chat message; other fields that clients add, such as those of our own answers, are dropped."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: CalledFunction | None = None


class Passed(BaseModel):
    """A part of a body that is passed to the model's endpoint unchanged, unknown fields included."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    def as_sent(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)


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


class Reasoning(Lenient):
    """How much a model thinks."""

    effort: str | None = None


class TextOptions(Lenient):
    """The format of a response; other fields are ignored."""

    format: AnswerFormat | None = None


class Kept(Lenient):
    """The number of tool uses to keep."""

    type: Literal["tool_uses"]
    value: int = Field(ge=0)


def packed_thoughts(data: Mapping[str, Any]) -> str:
    """Return what a provider wants back with an answer's calls as an opaque text, empty if that is nothing."""
    calls = [thoughts_in(call) for call in data.get("tool_calls", ())]
    thoughts = data.get("thoughts", {})
    return base64.b64encode(msgspec.json.encode([thoughts, calls])).decode() if thoughts or any(calls) else ""


def with_packed_thoughts(message: Message, packed: str) -> Message | None:
    """Return a message of calls with the thoughts in such a text; ``None`` if another server made it."""
    try:
        thoughts, calls = msgspec.json.decode(
            base64.b64decode(packed), type=tuple[dict[str, Any], list[dict[str, Any]]]
        )
    except (ValueError, RecursionError):
        return None
    if len(calls) != len(message.get("tool_calls") or ()):
        return None
    whole = [thoughts_in(carried) | call for carried, call in zip(calls, message["tool_calls"], strict=True)]
    return thoughts_in(thoughts) | message | {"tool_calls": whole}
