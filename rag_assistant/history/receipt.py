"""What was left out of a request and why, in figures; and the notice for the model. Pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from rag_assistant.records import Message, text_in

LeftOutReason = Literal[
    "turn_limit", "token_limit", "filtered", "excluded", "purged", "cleared", "summarised", "failed", "erased"
]
# For these reasons the rules leave out what the model would otherwise have seen; the others are people's decisions.
TRIMMING: frozenset[LeftOutReason] = frozenset({"turn_limit", "token_limit", "filtered"})
# These hide a single turn; all others hide everything up to a border.
SINGLE: frozenset[LeftOutReason] = frozenset({"excluded", "purged", "failed", "erased"})
# What these leave out has no answer, or none any more: it doesn't count as a turn.
UNANSWERED: frozenset[str] = frozenset({"failed", "erased"})


class LeftOut(Struct, frozen=True):
    """Turns between ``first_turn`` and ``last_turn`` that the model doesn't see, and why.

    Runs may overlap: the shortest one around a turn that isn't kept has its reason.
    ``trimmed`` says whether they count in ``history_trimmed``. It depends on what is sent and never on when, so that a
    regenerated answer says the same.
    """

    reason: LeftOutReason
    turns: int
    messages: int
    first_turn: int
    last_turn: int
    trimmed: bool


def left_out(
    reason: LeftOutReason, turns: int, messages: int, first_turn: int, last_turn: int, *, by_reset: bool = False
) -> LeftOut:
    """Return a run of left-out turns; ``by_reset``: it was cleared to make room for the current turn."""
    return LeftOut(reason, turns, messages, first_turn, last_turn, trimmed=by_reset or reason in TRIMMING)


class HistoryReceipt(Struct, frozen=True):
    """The figures of one request: turns and messages, kept and left out, and tokens by part (estimated).

    ``turns_total`` counts all earlier turns with an answer; ``turns_kept`` those sent whole, and ``turns_dropped``
    those left out by the window, the filter or the budget. A person left out the rest, or a summary in this request
    covers them: see ``left_out``. ``explanation`` is the adaptive filter's. ``results_shortened`` are tool results of
    earlier turns that became one line, ``results_cut`` those of the running turn that were cut.
    """

    max_history_turns: int | None
    strategy: str
    turns_total: int
    turns_kept: int
    turns_dropped: int
    messages_dropped: int
    first_kept_turn: int | None
    reason: LeftOutReason | None
    left_out: tuple[LeftOut, ...]
    kept_turns: tuple[int, ...] = ()
    explanation: str | None = None
    summary_sent: bool = False
    iterations_kept: int = 0
    iterations_dropped: int = 0
    iteration_messages_dropped: int = 0
    results_shortened: int = 0
    results_cut: int = 0
    tokens: dict[str, int] = field(default_factory=dict)

    def why_left_out(self, turn: int) -> LeftOutReason:
        """Return why a turn is not sent, unless a person excluded it individually."""
        runs = (run for run in self.left_out if run.first_turn <= turn <= run.last_turn)
        return next((run.reason for run in runs if run.reason not in SINGLE), "turn_limit")


def hidden_until(runs: Iterable[LeftOut]) -> int:
    """Return the last turn that is hidden up to a border, 0 if turns are only left out individually."""
    return max((run.last_turn for run in runs if run.reason not in SINGLE), default=0)


def notice_for(newest: int, others: int = 0, *, at_least: int | None = None) -> str:
    """Return the sentence that tells the model how much of the conversation it sees.

    The ``newest`` turns are complete, ``others`` were kept before them. ``at_least`` is for a window that grows before
    it is cut back: the sentence then names the number that stays the same, for the prompt cache.
    """
    before = f" and {others} before them" if others else ""
    if at_least is not None and newest >= at_least:
        return f"[History trimmed to at least the last {at_least} turns{before}]"
    return f"[History trimmed to last {newest} turns{before}]"


NOTICE = re.compile(r"\[History trimmed to (?:last|at least the last) [0-9]+ turns(?: and [0-9]+ before them)?\]")
NUMBERS = re.compile("[0-9]{1,9}")
# What stands between it and the system messages that it was merged with.
JOINT = "\n\n"


def without_notices(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages without notices of earlier requests: each request gets its own."""
    if not any("[History trimmed to " in text_in(one) for one in messages if one["role"] == "system"):
        return messages
    rest: list[Message] = []
    for one in messages:
        parts = text_in(one).split(JOINT) if one["role"] == "system" else []
        count = len(parts)
        while parts and NOTICE.fullmatch(parts[-1]):
            parts.pop()
        if parts or not count:
            rest.append(one if len(parts) == count else {**one, "content": JOINT.join(parts)})
    return rest


def notice_in(messages: Sequence[Message]) -> str | None:
    """Return the notice in messages: what is missing from them was left out of an earlier request."""
    matches = (NOTICE.findall(text_in(one)) for one in messages if one["role"] == "system")
    return next((notices[-1] for notices in matches if notices), None)


def renewed(notice: str, count: int) -> str:
    """Return an earlier request's notice; if fewer turns are kept than it says, a corrected one."""
    return notice if sum(map(int, NUMBERS.findall(notice))) <= count else notice_for(count)


def in_runs(runs: Iterable[LeftOut], kept_turns: Iterable[int] = ()) -> tuple[LeftOut, ...]:
    """Return the runs in order, neighbours with the same reason joined.

    Each begins and ends with a turn of its own, so that the narrowest run around a turn that isn't kept is its own.
    """
    runs = list(runs)
    others = {*kept_turns, *(run.first_turn for run in runs if run.first_turn == run.last_turn)}
    joined: list[LeftOut] = []
    for run in sorted((_without_others(run, others) for run in runs), key=lambda one: one.first_turn):
        last = joined[-1] if joined else None
        if last is not None and (last.reason, last.trimmed, last.last_turn + 1) == (
            run.reason, run.trimmed, run.first_turn,
        ):  # fmt: skip
            turns, messages = last.turns + run.turns, last.messages + run.messages
            joined[-1] = replace(run, turns=turns, messages=messages, first_turn=last.first_turn)
        else:
            joined.append(run)
    return tuple(joined)


def _without_others(run: LeftOut, others: Collection[int]) -> LeftOut:
    """Return a run without the turns of others at its ends."""
    first, last = run.first_turn, run.last_turn
    while first < last and first in others:
        first += 1
    while first < last and last in others:
        last -= 1
    return replace(run, first_turn=first, last_turn=last)
