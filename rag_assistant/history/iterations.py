"""The tool iterations of the running turn: which of them the model still sees. An iteration is kept whole or not at
all.

Pure: no Flask, no SQL, no network, no clock.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct

from rag_assistant.history.turns import joined, tool_calls_of
from rag_assistant.history.window import check_history_limit
from rag_assistant.records import Message


class KeptIterations(Struct, frozen=True):
    """What is left of a running turn, and the figures for receipt and log."""

    messages: tuple[Message, ...]
    iterations_kept: int
    iterations_dropped: int
    messages_dropped: int


def keep_last_iterations(
    current: Sequence[Message], limit: int | None, pending: Collection[str] = ()
) -> KeptIterations:
    """Return the running turn with its last ``limit`` tool iterations; 0 keeps none, ``None`` all of them.

    An iteration is one assistant message that calls tools, with all its results behind it, however many, and with what
    the assistant said directly before it. The question stays, and whatever else the user said meanwhile, each in its
    place. Never counted and never cut is an iteration that is still open: one without all its results, or one of whose
    calls waits for a person (``pending`` ids).

    Raises InvalidHistoryLimit (a ValueError) unless ``limit`` is a whole number of 0 or more, or ``None``.
    """
    check_history_limit(limit, "tool_iterations_keep")
    pieces = _pieces(current)
    closed = [index for index, piece in enumerate(pieces) if _is_closed_iteration(piece, pending)]
    dropped = set(closed if limit == 0 else closed[:-limit] if limit is not None else ())
    remaining = tuple(joined(piece for index, piece in enumerate(pieces) if index not in dropped))
    return KeptIterations(
        messages=remaining,
        iterations_kept=len(closed) - len(dropped),
        iterations_dropped=len(dropped),
        messages_dropped=len(current) - len(remaining),
    )


def _pieces(current: Sequence[Message]) -> list[list[Message]]:
    """Cut a turn into iterations and single messages, which joined are the turn again."""
    pieces: list[list[Message]] = []
    for message in current:
        before = pieces[-1][-1] if pieces else {"role": "user"}
        answers = message["role"] == "tool" and (before["role"] == "tool" or bool(tool_calls_of(before)))
        goes_on = message["role"] == before["role"] == "assistant" and not tool_calls_of(before)
        if answers or goes_on:
            pieces[-1].append(message)
        else:
            pieces.append([message])
    return pieces


def _is_closed_iteration(piece: Sequence[Message], pending: Collection[str]) -> bool:
    calls = [call for message in piece for call in tool_calls_of(message)]
    results = sum(message["role"] == "tool" for message in piece)
    waits = any(call.get("id") in pending for call in calls)
    return bool(calls) and results >= len(calls) and not waits
