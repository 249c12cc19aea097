"""The window: which past turns, and tool iterations of the running one, the model sees, whole or not at all. Pure."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from rag_assistant.history.turns import joined, split_turns, tool_calls_of
from rag_assistant.records import Message
from rag_assistant.records.errors import InvalidHistoryLimit


def check_history_limit(value: object, name: str = "max_history_turns") -> int | None:
    """Return ``value`` if it is a whole number of 0 or more, or ``None`` for no limit.

    Raises InvalidHistoryLimit (a ValueError), which contains ``name``, for everything else; ``True``, ``2.0`` and
    ``"5"`` are not whole numbers.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise InvalidHistoryLimit(name, repr(value))


def turns_in_window(total: int, max_history_turns: int | None, slack: int = 0) -> int:
    """Return how many of ``total`` past turns the window keeps: the newest ones.

    Without slack that is ``max_history_turns``. With slack the window grows to ``max_history_turns + slack`` turns
    before it is cut back, so that its start moves in steps of ``slack + 1`` turns and a provider's prompt cache can
    use the prefix again in between. The start depends on ``total`` alone; never fewer than ``max_history_turns`` stay.
    """
    if max_history_turns is None or total <= max_history_turns:
        return total
    start = (total - max_history_turns) // (slack + 1) * (slack + 1)
    return total - start


def trim_history(messages: Sequence[Message], max_history_turns: int | None) -> tuple[list[Message], int]:
    """Return the messages that the model sees, and how many were dropped.

    Kept are the leading system block, the newest ``max_history_turns`` past turns in their order, and the current
    turn, which is never counted. 0 keeps no past turn, ``None`` keeps them all. The input is not changed; its message
    dicts are passed on as they are.

    Raises InvalidHistoryLimit (a ValueError) unless ``max_history_turns`` is a whole number of 0 or more, or ``None``.
    """
    limit = check_history_limit(max_history_turns)
    split = split_turns(messages)
    past = split.past[len(split.past) - turns_in_window(len(split.past), limit) :]
    trimmed = joined([split.system, *past, split.current])
    return trimmed, len(messages) - len(trimmed)


class KeptIterations(Struct, frozen=True):
    """What is left of a running turn, and the figures for receipt and log."""

    messages: tuple[Message, ...]
    iterations_kept: int
    iterations_dropped: int


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
    return KeptIterations(remaining, len(closed) - len(dropped), len(dropped))


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
