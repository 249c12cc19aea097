"""What a model should see of a conversation, worked out from the pages alone: the whole conversation, turn by turn.

It shares no code with the application, which reads and counts as little as it can.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

TRIMMING = ("turn_limit", "token_limit", "filtered")
Reasons = dict[int, str | None]


@dataclass
class Turn:
    """A turn; ``root`` is the same in its copies. ``answers`` are all it ever had, by version: text and tool calls."""

    number: int
    root: int
    question: str
    overflow: str = "trim"
    answers: dict[int, tuple[str, int]] = field(default_factory=dict)
    version: int = 1
    pinned: bool = False
    excluded: bool = False
    erased: bool = False

    @property
    def answer(self) -> str:
        return self.answers.get(self.version, ("", 0))[0]

    @property
    def calls(self) -> int:
        return self.answers.get(self.version, ("", 0))[1]

    def copy(self) -> Turn:
        return replace(self, answers=dict(self.answers))


@dataclass(frozen=True)
class Summary:
    """A summary and the turns in it; its id is its place among all that were ever made."""

    id: int
    covered: frozenset[int]


@dataclass(frozen=True)
class View:
    """What undo brings back: where the context began, and the summary. ``room_for``: a reset moved it for this turn."""

    start: int = 1
    earlier: tuple[int, ...] = ()
    summary: Summary | None = None
    room_for: int = 0

    @property
    def covered(self) -> frozenset[int]:
        return self.summary.covered if self.summary else frozenset()

    @property
    def begin(self) -> int:
        return max(self.covered, default=self.start - 1) + 1


@dataclass
class Change:
    """A change that can be undone, and how things were before it."""

    kind: str
    view: View
    marks: tuple[Turn, bool, bool] | None = None
    rules: dict[str, Any] | None = None


@dataclass
class Rules:
    """The rules of a question."""

    limit: int | None = 5
    strategy: str = "window"
    slack: int = 0


@dataclass
class Talk:
    """A conversation. ``own`` are the rules that it overrides."""

    turns: list[Turn] = field(default_factory=list)
    view: View = View()
    changes: list[Change] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    own: dict[str, Any] = field(default_factory=dict)

    def change(self, kind: str, view: View | None = None, marked: Turn | None = None, **marks: bool) -> None:
        """Change the view, or a turn's marks; remember how it was, unless nothing changes."""
        rules = dict(self.own) if kind == "reset" and not (view and view.room_for) else None
        before = Change(kind, self.view, marked and (marked, marked.pinned, marked.excluded), rules)
        if marked:
            marked.pinned, marked.excluded = marks["pinned"], marks["excluded"]
        self.view = view or self.view
        if rules is not None:
            self.own = {}
        after = Change(kind, self.view, marked and (marked, marked.pinned, marked.excluded), rules and {})
        if before != after:
            self.changes.append(before)

    def undo(self) -> bool:
        if not self.changes:
            return False
        change = self.changes.pop()
        if change.marks:
            change.marks[0].pinned, change.marks[0].excluded = change.marks[1:]
        if change.rules is not None:
            self.own = change.rules
        if self.view.summary != change.view.summary:
            self.summaries = [one for one in self.summaries if one != self.view.summary]
        self.view = change.view
        return True

    def moved(self, start: int, room_for: int = 0) -> View:
        """Return the view after a clear or a reset."""
        return View(start, tuple(sorted({*self.view.earlier, self.view.start} - {start})), None, room_for)

    def summarise(self, until: int, summary_id: int) -> bool:
        """Put a summary in the place of all turns before number ``until``; pinned ones stay."""
        new = {turn.number for turn in self._seen(until) if not turn.pinned} - self.view.covered
        if not new:
            return False
        self.summaries.append(Summary(summary_id, self.view.covered | new))
        self.change("compact", replace(self.view, summary=self.summaries[-1]))
        return True

    def branch(self, number: int) -> Talk:
        """Return a branch at a turn: what held then, as far as it was not undone since."""
        starts = [one for one in (*self.view.earlier, self.view.start) if one <= number] or [1]
        summaries = [one for one in self.summaries if max(one.covered) < number]
        usable = [one for one in summaries if min(one.covered) >= starts[-1]]
        view = View(starts[-1], tuple(starts[:-1]), usable[-1] if usable else None)
        turns = [turn.copy() for turn in self.turns[: number - 1]]
        return Talk(turns, view, [], summaries, dict(self.own))

    def erase(self, root: int) -> None:
        """Erase the turn, if it is here, with the summaries made from it, which no undo brings back."""
        for turn in (one for one in self.turns if one.root == root):
            turn.erased, turn.pinned, turn.excluded, turn.version, turn.answers = True, False, False, 1, {}
            gone = {one for one in self.summaries if turn.number in one.covered}
            self.summaries = [one for one in self.summaries if one not in gone]
            later = self.view = _without(self.view, gone)
            for change in reversed(list(self.changes)):
                change.view = _without(change.view, gone)
                nothing = change.kind == "compact" and (change.view.start, change.view.summary) == (
                    later.start, later.summary,
                )  # fmt: skip
                if nothing or (change.marks and change.marks[0] is turn):
                    self.changes.remove(change)
                later = change.view

    def fixed(self, turn: Turn) -> bool:
        """Whether a summary that is sent, or would be after an undo, has this answer."""
        return any(turn.number in view.covered for view in (self.view, *(change.view for change in self.changes)))

    def _seen(self, before: int) -> list[Turn]:
        return [
            turn
            for turn in self.turns[: before - 1]
            if turn.answer and not turn.excluded and turn.number >= self.view.start
        ]

    def reasons(self, number: int, rules: Rules, kept: int | None = None, *, summarised: bool = True) -> Reasons:
        """Return for each turn before ``number`` why it is left out; ``None`` if it is sent.

        ``kept`` is to how many the token budget brings it: the oldest go, and pinned ones after all others.
        ``summarised`` says whether there is room for the summary.
        """
        why: Reasons = {}
        for turn in self.turns[: number - 1]:
            if turn.erased or not turn.answer:
                why[turn.number] = "erased" if turn.erased else "failed"
            elif turn.number < self.view.start:
                why[turn.number] = "cleared"
            elif turn.excluded:
                why[turn.number] = "excluded"
            elif turn.number in self.view.covered:
                why[turn.number] = "summarised"
        rest = [turn for turn in self._seen(number) if turn.number not in why]
        # What is pinned and older than a summary's last turn is no part of the window.
        counted = [turn for turn in rest if turn.number >= self.view.begin or not turn.pinned]
        chosen = _smart(counted, rules) if rules.strategy == "smart" else _newest(counted, rules)
        for turn in rest:
            why[turn.number] = None if turn in chosen else "filtered" if rules.strategy == "smart" else "turn_limit"
        for turn in (one for one in self._seen(number) if one.pinned):
            why[turn.number] = None
        sent = sorted((turn for turn in self._seen(number) if why[turn.number] is None), key=lambda turn: turn.pinned)
        gone = {turn.number for turn in sent[: len(sent) - kept]} if kept is not None else set()
        lost = gone if summarised else gone | {n for n, reason in why.items() if reason == "summarised"}
        return why | dict.fromkeys(lost, "token_limit")

    def trimmed(self, why: Reasons, number: int) -> list[int]:
        room = self.view.room_for == self.view.start == number
        return [n for n, reason in why.items() if reason in TRIMMING or (room and reason == "cleared")]

    def notice(self, why: Reasons, number: int, rules: Rules) -> str | None:
        """Return what the model is told."""
        trimmed = self.trimmed(why, number)
        if not trimmed:
            return None
        kept = [n for n, reason in why.items() if reason is None]
        newest = sum(n > max(trimmed) for n in kept)
        before = f" and {len(kept) - newest} before them" if newest < len(kept) else ""
        if rules.slack and rules.strategy == "window" and rules.limit is not None and newest >= rules.limit:
            return f"[History trimmed to at least the last {rules.limit} turns{before}]"
        return f"[History trimmed to last {newest} turns{before}]"

    def keep_from(self, why: Reasons, number: int) -> int:
        """Return the first turn that a compaction leaves as it is: the newer half of what is sent."""
        border = max(self.trimmed(why, number), default=0)
        newest = [n for n, reason in why.items() if reason is None and n > border]
        return newest[len(newest) // 2] if newest else number


def _without(view: View, gone: set[Summary]) -> View:
    return replace(view, summary=None) if view.summary in gone else view


def _newest(turns: list[Turn], rules: Rules) -> list[Turn]:
    if rules.limit is None:
        return turns
    size = 0
    for _ in turns:
        size = size + 1 if size < rules.limit + rules.slack else rules.limit
    return turns[len(turns) - size :]


def _smart(turns: list[Turn], rules: Rules) -> list[Turn]:
    chosen = turns[-1:]
    if 2 < len(turns) <= 5:
        chosen = [*([turn for turn in turns[:-1] if turn.calls] or turns[:-1])[-1:], *chosen]
    elif len(turns) <= 2 or any(turn.calls for turn in turns[-2:]):
        chosen = turns[-2:]
    return chosen if rules.limit is None else chosen[max(0, len(chosen) - rules.limit) :]
