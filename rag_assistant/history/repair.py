"""Repair a list of messages so that every strict provider accepts it: each tool call directly followed by its result.

Pure: no Flask, no SQL, no network, no clock. Deterministic, and a repaired list stays as it is.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

from rag_assistant.history.turns import tool_calls_of
from rag_assistant.records import Message

MISSING_RESULT = "No result was recorded for this call."


def repair_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with every tool call answered exactly once, results directly after their call.

    A result without a call is removed, as is a second result for the same call. A call without a result gets a fixed
    one, unless it is in the last message that calls tools and nothing was said since: that turn is still running. Ids
    are matched by position within one assistant message and its results, because real providers send null, empty and
    repeated ones. Everything else keeps its place and its text.
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
