"""The adaptive filter: how a conversation is structured, and how many completed turns are worth sending. Pure."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from rag_assistant.history.turns import is_injected, split_turns, tool_calls_of, uses_tools
from rag_assistant.records import Message

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
