"""The window and the adaptive filter: which past turns, and tool iterations of the running one, the model sees. Pure.

Each is seen whole or not at all.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct

from rag_assistant.history.turns import is_injected, joined, split_turns, tool_calls_of, uses_tools
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


Label = Literal["system", "injected", "injected_before", "completed", "current", "active"]


# Of up to two completed turns both stay, of up to five the newest and one with tools, if there is one. Of more, the
# newest stays, and the one before it if one of the two used tools.
FEW, SOME, RECENT = 2, 5, 2
# How many of the newest turns decide, whatever the conversation's length.
TURNS_WORTH_READING = max(SOME, RECENT)


class Segment(Struct, frozen=True):
    """A completed turn: the positions of its first and last message, and whether it used tools."""

    first: int
    last: int
    uses_tools: bool


class HistoryStructure(Struct, frozen=True):
    """What each message of a conversation is for.

    ``labels`` has one word for each message: ``system`` (the leading block), ``injected`` (a block beside the current
    question), ``injected_before`` (one beside an earlier question), ``completed`` (part of a completed turn),
    ``current`` (what the user says now) and ``active`` (the unfinished tool chain after it). ``open_calls`` are the ids
    of tool calls without a result.
    """

    labels: tuple[Label, ...]
    segments: tuple[Segment, ...]
    open_calls: tuple[str | None, ...]


def analyse_history(messages: Sequence[Message]) -> HistoryStructure:
    """Return what each message is for, the completed segments and the calls that wait for a result.

    An injected block is a message with ``meta: {"kind": "context_injection"}``: retrieved text is no turn and makes
    none.
    """
    split = split_turns(messages)
    labels: list[Label] = ["system"] * len(split.system)
    segments = []
    for turn in split.past:
        segments.append(Segment(len(labels), len(labels) + len(turn) - 1, uses_tools(turn)))
        labels += ["injected_before" if is_injected(message) else "completed" for message in turn]
    open_calls: list[str | None] = []
    for message in split.current:
        is_active = message["role"] in ("assistant", "tool")
        labels.append("injected" if is_injected(message) else "active" if is_active else "current")
        open_calls += [call.get("id") or None for call in tool_calls_of(message)]
        answered = message.get("tool_call_id") or None
        if message["role"] == "tool" and answered in open_calls:
            open_calls.remove(answered)
    return HistoryStructure(tuple(labels), tuple(segments), tuple(open_calls))


def choose_turns(used_tools: Sequence[bool], total: int) -> tuple[set[int], str]:
    """Return which of the newest turns stay, as positions in ``used_tools``, and why, in one sentence.

    ``used_tools`` says whether the newest turns, oldest first, used tools; ``total`` counts all completed turns.
    """
    newest_first = sorted(range(len(used_tools)), reverse=True)
    keep, size, why = RECENT, "more", ""
    if total <= FEW:
        size = f"up to {FEW}"
    elif total <= SOME:
        newest_first = newest_first[:1] + sorted(newest_first[1:], key=lambda index: not used_tools[index])
        size, why = f"up to {SOME}", ", those with tools first"
    elif any(used_tools[-RECENT:]):
        why = f", as one of the last {RECENT} used tools"
    else:
        keep = 1
    return set(newest_first[:keep]), f"{total} completed turns ({size}): {keep} kept{why}."


def without_injected(turn: Sequence[Message]) -> Sequence[Message]:
    """Return a past turn without injected blocks, unless there is no other question."""
    rest = [message for message in turn if not is_injected(message)]
    return rest if any(message["role"] == "user" for message in rest) else turn
