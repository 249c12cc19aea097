"""What other records are built from: messages for a model, pictures, and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.json import Decoder
from pydantic import BaseModel

# Sent and stored unchanged.
DataUrl = str
DATA_URL = r"^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$"


def with_pictures(message: Message, pictures: Sequence[DataUrl]) -> Message:
    """Return a message with pictures after its text; without pictures it is unchanged."""
    if not pictures:
        return message
    parts: list[dict[str, Any]] = [{"type": "text", "text": message["content"] or ""}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    return message | {"content": parts}


def text_in(message: Message) -> str:
    """Return the text of a message, given as a string or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def pictures_in(message: Message) -> tuple[DataUrl, ...]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return tuple(part["image_url"]["url"] for part in parts if part["type"] == "image_url")


# What goes to the model and nothing else: a dict in the OpenAI chat format.
Message = dict[str, Any]
# The largest id or position that every supported database accepts.
MAX_INT32 = 2**31 - 1
# A number that can be one; also how many there are of something.
Number = Annotated[int, Meta(ge=0, le=MAX_INT32)]


class Unset(Struct, frozen=True):
    """The type of ``UNSET``: no value was given, where ``None`` already means "no limit"."""


UNSET = Unset()


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return ascending numbers as runs of neighbours: [first, last]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def build_types() -> None:
    """Build what records and models otherwise build at their first use: two threads at once crash msgspec there."""
    for kind in _kinds_of(Struct):
        with suppress(NameError, TypeError):  # One that nothing is converted to.
            Decoder(kind)
    for model in _kinds_of(BaseModel):
        model.model_rebuild()


def _kinds_of(base: type[Any]) -> Iterator[type[Any]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("rag_assistant."):
            yield kind
        yield from _kinds_of(kind)
