"""Read a list of messages as turns: cut and count them, and repair what strict providers refuse.

Pure: no Flask, no SQL, no network, no clock. Messages are dicts in the OpenAI chat format and are never changed.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import dropwhile, pairwise
from typing import Any

from msgspec import Struct

from rag_assistant.records import Message

SYSTEM_ROLES = frozenset({"system", "developer"})
INJECTED = "context_injection"
MISSING_RESULT = "No result was recorded for this call."


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
        system=tuple(messages[:body_start]), past=tuple(turns[:past_count]), current=tuple(joined(turns[past_count:]))
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


def repair_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages as every strict provider accepts them: each call answered once, directly after it.

    A result without a call is removed, as is a second result for the same call. A call without a result gets a fixed
    one, unless it is in the last message that calls tools and nothing was said since: that turn is still running. Ids
    are matched by position within one assistant message and its results, because real providers send null, empty and
    repeated ones. Everything else keeps its place and its text, and a repaired list stays as it is.
    """
    mended: list[Message] = []
    i = 0
    while i < len(messages):
        message = messages[i]
        i += 1
        if message["role"] == "tool":
            continue  # Its call doesn't precede it, or was answered before.
        mended.append(message)
        calls = tool_calls_of(message)
        if not calls:
            continue
        end = i
        while end < len(messages) and messages[end]["role"] != "assistant":
            end += 1
        between = messages[i:end]
        others = [m for m in between if m["role"] != "tool"]
        results = _match([call.get("id") for call in calls], [m for m in between if m["role"] == "tool"])
        still_running = end == len(messages) and not others
        for call, result in zip(calls, results, strict=True):
            if result is not None:
                mended.append(result)
            elif not still_running:
                mended.append({"role": "tool", "tool_call_id": call.get("id"), "content": MISSING_RESULT})
        mended.extend(others)
        i = end
    return mended


def _match(call_ids: Sequence[str | None], results: Sequence[Message]) -> list[Message | None]:
    """Return for each call its result or None: the first unused result with the same id, in order of arrival."""
    unused: defaultdict[str | None, deque[Message]] = defaultdict(deque)
    for result in results:
        unused[result.get("tool_call_id") or None].append(result)
    return [of_id.popleft() if (of_id := unused[call_id or None]) else None for call_id in call_ids]


def purge_exchange(
    question: Sequence[Message], answered: Sequence[Message], done: Collection[str]
) -> tuple[Sequence[Message] | None, Sequence[Message] | None]:
    """Return what is left of the turn that asked for confirmation and of the one that gave it; ``None`` for nothing.

    ``done`` are the ids of the calls that asked. Results of other calls stay, with the answer based on them. If only
    the second turn called another tool, the first turn's question replaces the confirmation.
    """
    before, after = without_calls(question, done), without_calls(answered, done)
    if uses_tools(before):
        return before, after if uses_tools(after) else None
    if not uses_tools(after):
        return None, None
    user_messages = [message for message in question or answered if message["role"] == "user"]
    return None, [*user_messages, *dropwhile(lambda message: message["role"] == "user", after)]


def without_calls(turn: Sequence[Message], call_ids: Collection[str]) -> list[Message]:
    """Return a turn without some calls and their results."""
    rest: list[Message] = []
    answers: list[bool] = []
    for message in turn:
        calls = tool_calls_of(message)
        if calls:
            answers = [call.get("id") not in call_ids for call in calls]
            remaining = [call for call, stays in zip(calls, answers, strict=True) if stays]
            if remaining:
                rest.append(message if len(remaining) == len(calls) else {**message, "tool_calls": remaining})
        elif message["role"] != "tool" or answers.pop(0):
            rest.append(message)
    return rest


def holds_call(turn: Sequence[Message], call_ids: Collection[str]) -> bool:
    return any(call.get("id") in call_ids for message in turn for call in tool_calls_of(message))
