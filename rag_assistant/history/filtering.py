"""The adaptive filter: how a conversation is structured, and how many of its completed turns are worth sending.

Pure: no Flask, no SQL, no network, no clock.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from rag_assistant.history.turns import SplitMessages, is_injected, split_turns, tool_calls_of, uses_tools
from rag_assistant.records import Message

Label = Literal["system", "injected", "injected_before", "completed", "current", "active"]


class FilterLevel(Struct, frozen=True):
    """What is kept of a conversation with up to ``up_to_turns`` completed turns (``None``: of every longer one).

    ``keep`` turns stay, or ``keep_with_tools`` when one of the last two used tools. With ``prefer_tools`` the newest
    turn stays, and then those that used tools come first.
    """

    up_to_turns: int | None
    keep: int
    keep_with_tools: int | None = None
    prefer_tools: bool = False


DEFAULT_LEVELS = (
    FilterLevel(up_to_turns=2, keep=2),
    FilterLevel(up_to_turns=5, keep=2, prefer_tools=True),
    FilterLevel(up_to_turns=None, keep=1, keep_with_tools=2),
)
RECENT = 2


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
    labels += [_label_of_current(message) for message in split.current]
    return HistoryStructure(tuple(labels), tuple(segments), tuple(_open_calls(split)))


def _label_of_current(message: Message) -> Label:
    if is_injected(message):
        return "injected"
    return "active" if message["role"] in ("assistant", "tool") else "current"


def _open_calls(split: SplitMessages) -> list[str | None]:
    open_calls: list[str | None] = []
    for message in split.current:
        if message["role"] == "tool":
            call_id = message.get("tool_call_id") or None
            if call_id in open_calls:
                open_calls.remove(call_id)
        else:
            open_calls += [call.get("id") or None for call in tool_calls_of(message)]
    return open_calls


def level_for(total: int, levels: Sequence[FilterLevel] = DEFAULT_LEVELS) -> FilterLevel:
    """Return the level for a conversation of ``total`` completed turns: the first whose limit it does not exceed."""
    return next((level for level in levels if level.up_to_turns is None or total <= level.up_to_turns), levels[-1])


def turns_worth_reading(levels: Sequence[FilterLevel] = DEFAULT_LEVELS) -> int:
    """Return how many of the newest turns decide the filter's choice, whatever the conversation's length."""
    sizes = [max(level.up_to_turns or 0, level.keep, level.keep_with_tools or 0) for level in levels]
    return max([RECENT, *sizes])


def choose_turns(
    used_tools: Sequence[bool], total: int, levels: Sequence[FilterLevel] = DEFAULT_LEVELS
) -> tuple[set[int], str]:
    """Return which of the newest turns stay, as positions in ``used_tools``, and why, in one sentence.

    ``used_tools`` says whether the newest turns, oldest first, used tools; ``total`` counts all completed turns. The
    newest turn always stays.
    """
    level = level_for(total, levels)
    recent_tools = any(used_tools[-RECENT:])
    keep = level.keep_with_tools if recent_tools and level.keep_with_tools is not None else level.keep
    keep = max(1, keep)
    newest_first = sorted(range(len(used_tools)), reverse=True)
    if level.prefer_tools:
        newest_first = newest_first[:1] + sorted(newest_first[1:], key=lambda index: not used_tools[index])
    size = "more" if level.up_to_turns is None else f"up to {level.up_to_turns}"
    why = f"{total} completed turns ({size}): {keep} kept"
    if level.prefer_tools:
        why += ", those with tools first"
    elif keep != level.keep:
        why += f", as one of the last {RECENT} used tools"
    return set(newest_first[:keep]), why + "."


def without_injected(turn: Sequence[Message]) -> Sequence[Message]:
    """Return a past turn without injected blocks, unless there is no other question."""
    rest = [message for message in turn if not is_injected(message)]
    return rest if any(message["role"] == "user" for message in rest) else turn
