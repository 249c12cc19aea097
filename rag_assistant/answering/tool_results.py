"""What a tool gives back, ours or another program's."""

from typing import Any

from msgspec import Struct

from rag_assistant.records import Passage

MAX_NAME_CHARS = 60
NAME_END_CHARS = 15


class ToolResult(Struct, frozen=True):
    """A tool's result: text for the model, passages to number as sources, a question to a
    person, or a note to store.
    """

    text: str
    passages: tuple[Passage, ...] = ()
    asks: str | None = None
    arguments: dict[str, Any] | None = None
    note: str | None = None


def quoted_name(name: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return a name so that nothing in it can be taken for one of our sentences, in plain text and as Markdown."""
    if len(name) > max_chars:
        name = f"{name[: max_chars - NAME_END_CHARS - 1]}…{name[-NAME_END_CHARS:]}"
    return "`" + name.replace("`", "'") + "`"
