"""Read a list of messages as turns.

Pure: no Flask, no SQL, no network, no clock. Messages are dicts in the OpenAI chat format and are never changed.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from rag_assistant.records import Message

SYSTEM_ROLES = frozenset({"system", "developer"})
INJECTED = "context_injection"


class SplitMessages(Struct, frozen=True):
    """A conversation in its parts; joined in this order they are the conversation again."""

    system: tuple[Message, ...]
    past: tuple[tuple[Message, ...], ...]
    current: tuple[Message, ...]


def split_turns(messages: Sequence[Message]) -> SplitMessages:
    """Cut a conversation into its leading system block, its past turns and the current turn.

    A turn begins at a user message and runs to the next one that follows something else, so consecutive user messages
    are one turn. An assistant's greeting before the first question belongs to the oldest turn. The current turn is
    everything behind the last completed turn: what the user adds while tools run belongs to it. It is empty when the
    conversation ends with an answer. Injected blocks alone begin no turn.
    """
    body_start = length_of_system_block(messages)
    starts = [i for i in range(body_start, len(messages)) if i == body_start or _begins_turn(messages, i)]
    if len(starts) > 1 and all(message["role"] != "user" for message in messages[body_start : starts[1]]):
        del starts[1]  # What precedes the first question is no turn of its own.
    turns = [tuple(messages[start:end]) for start, end in pairwise([*starts, len(messages)])]
    past_count = len(turns)
    while past_count and not is_completed(turns[past_count - 1], followed=past_count < len(turns)):
        past_count -= 1
    return SplitMessages(
        system=tuple(messages[:body_start]),
        past=tuple(turns[:past_count]),
        current=tuple(joined(turns[past_count:])),
    )


def _begins_turn(messages: Sequence[Message], i: int) -> bool:
    """Return whether a turn begins at a message: the user speaks, and no earlier call awaits its result."""
    if messages[i]["role"] != "user" or messages[i - 1]["role"] == "user":
        return False
    following = i
    while following < len(messages) and messages[following]["role"] == "user":
        following += 1
    if following == len(messages):
        return True
    return messages[following]["role"] != "tool" and not all(map(is_injected, messages[i:following]))


def is_injected(message: Message) -> bool:
    """Return whether a message was injected beside a question, such as retrieved text."""
    meta = message.get("meta")
    return isinstance(meta, dict) and meta.get("kind") == INJECTED


def is_completed(turn: Sequence[Message], *, followed: bool = False) -> bool:
    """Return whether a turn ends with an assistant message that leaves no tool call open.

    In a turn that is ``followed`` by another one, a system message may come after that answer.
    """
    end = len(turn)
    while followed and end and turn[end - 1]["role"] in SYSTEM_ROLES:
        end -= 1
    return end > 0 and turn[end - 1]["role"] == "assistant" and not tool_calls_of(turn[end - 1])


def tool_calls_of(message: Message) -> list[dict[str, Any]]:
    return list(message.get("tool_calls") or ()) if message["role"] == "assistant" else []


def uses_tools(turn: Sequence[Message]) -> bool:
    return any(tool_calls_of(message) for message in turn)


def length_of_system_block(messages: Sequence[Message]) -> int:
    """Return the length of the leading system block, which belongs to no turn."""
    return next((n for n, one in enumerate(messages) if one["role"] not in SYSTEM_ROLES), len(messages))


def joined(parts: Iterable[Sequence[Message]]) -> list[Message]:
    """Return the messages of all parts as one new list."""
    return [message for part in parts for message in part]
