"""Purging: a finished confirmation leaves the model's view. A tool that destroys something asks a person first; after
yes or no, the turn that asked and the turn that answered are of no use to the model any more.

Pure: no Flask, no SQL, no network, no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rag_assistant.history.turns import tool_calls_of
from rag_assistant.records import Message


def turns_of_exchanges(past: Sequence[Sequence[Message]], done: Collection[str]) -> set[int]:
    """Return the positions of the turns that belong to finished confirmations, whose call ids are ``done``.

    A turn that holds such a call goes, and the turn behind it, in which the person answered. What is still open is in
    none of them.
    """
    asked = {index for index, turn in enumerate(past) if done and holds_call(turn, done)}
    return asked | {index + 1 for index in asked if index + 1 < len(past)}


def holds_call(turn: Sequence[Message], call_ids: Collection[str]) -> bool:
    """Tell whether one of the calls was made in a turn."""
    return any(call.get("id") in call_ids for message in turn for call in tool_calls_of(message))
