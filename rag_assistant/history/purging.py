"""Purging: a finished confirmation leaves the model's view. A tool that destroys something asks a person first; after
yes or no, the turn that asked and the turn that answered are of no use to the model any more, but for what other calls
found in them.

Pure: no Flask, no SQL, no network, no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import dropwhile

from rag_assistant.history.turns import tool_calls_of, uses_tools
from rag_assistant.records import Message


def purge_exchange(
    question: Sequence[Message], answered: Sequence[Message], done: Collection[str]
) -> tuple[Sequence[Message] | None, Sequence[Message] | None]:
    """Return what is left of the turn that asked and of the turn in which the person answered; ``None`` of nothing.

    ``done`` are the ids of the calls that asked. What another call found stays, with the answer that was made of it.
    Where only the second turn called another tool, the first turn's question stands in the place of the person's word.
    """
    before, after = without_calls(question, done), without_calls(answered, done)
    if uses_tools(before):
        return before, after if uses_tools(after) else None
    if not uses_tools(after):
        return None, None
    user_messages = [message for message in question or answered if message["role"] == "user"]
    return None, [*user_messages, *dropwhile(lambda message: message["role"] == "user", after)]


def without_calls(turn: Sequence[Message], call_ids: Collection[str]) -> list[Message]:
    """Return a turn without some calls and their results, which stand behind their call in its order."""
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
