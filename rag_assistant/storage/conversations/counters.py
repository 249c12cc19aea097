"""The counters of a conversation: what was said in it, and what of it is in the model's view.

The view is counted after a change of what the model may see, never for a question. Turns that it leaves as they were
are not read again: how much is visible before a turn is counted from the nearest turn for which that is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Integer, Update, bindparam, case, false, func, or_, select, update

from rag_assistant.storage.database import set_values
from rag_assistant.storage.tables import (
    HELD,
    HIDDEN,
    MARKED,
    conversations,
    history_changes,
    messages,
    summaries,
    turns,
)

MAX_HIDDEN_LISTED = 200
ROLES = ("user", "assistant", "tool")

# A turn without an answer was never completed, whatever a person marked it with.
ANSWERED = turns.c.visible | ((turns.c.excluded | turns.c.purged) & (turns.c.message_count > 1))
WHY_HIDDEN = case(
    (turns.c.status == "erased", "erased"), (~ANSWERED, "failed"), (turns.c.purged, "purged"), else_="excluded"
)

MORE_MESSAGES = {f"{role}_messages": conversations.c[f"{role}_messages"] + bindparam(f"more_{role}") for role in ROLES}
_MESSAGES_IN = (
    select(messages.c.role, func.count()).where(messages.c.turn_id == bindparam("turn")).group_by(messages.c.role)
)
_OWN = turns.c.conversation_id == bindparam("conversation")
_OF_TURN = select(turns.c.conversation_id).where(turns.c.id == bindparam("turn")).scalar_subquery()
_BETWEEN = turns.c.number.between(bindparam("first"), bindparam("last"))
_COUNTED = func.count(), func.coalesce(func.sum(turns.c.message_count), 0)
_VISIBLE = select(*_COUNTED).where(_OWN, turns.c.visible, _BETWEEN)
_HELD = select(*_COUNTED).where(_OWN, HELD, _BETWEEN)
# What a person took out of the turns before one.
_HIDDEN_ANSWERS = select(*_COUNTED).where(_OWN, HIDDEN, ANSWERED, turns.c.number < bindparam("before"))
_LEFT_OUT = (
    _OWN, turns.c.number >= bindparam("first"), turns.c.number < bindparam("end"), HIDDEN, turns.c.status != "running"
)  # fmt: skip
_LISTED = (
    select(turns.c.number, turns.c.message_count, WHY_HIDDEN)
    .where(*_LEFT_OUT)
    .order_by(turns.c.number.desc())
    .limit(bindparam("limit"))
)
_BEFORE_THOSE = (
    select(
        WHY_HIDDEN,
        func.count(),
        func.sum(turns.c.message_count),
        func.min(turns.c.number),
        func.max(turns.c.number),
    )
    .where(*_LEFT_OUT)
    .group_by(WHY_HIDDEN)
)
_ROW = select(conversations).where(conversations.c.id == bindparam("conversation"))
_COUNT_MESSAGES = update(conversations).where(conversations.c.id == _OF_TURN).values(MORE_MESSAGES)
_COVERED = select(summaries.c.covered).where(summaries.c.id == bindparam("summary"))
_CHANGED = (
    update(conversations)
    .where(conversations.c.id == bindparam("conversation"))
    .values(changes=conversations.c.changes + 1)
)


class Sum(Struct, frozen=True):
    """A number of turns, and of messages in them."""

    turns: int = 0
    messages: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.turns + other.turns, self.messages + other.messages)

    def __sub__(self, other: Sum) -> Sum:
        return Sum(self.turns - other.turns, self.messages - other.messages)


class VisibleBefore:
    """How much the model could see of the turns before a number, if its view began with the first one.

    Knows it of the turn at which a view begins and of the last one, and counts from the nearest of them.
    """

    def __init__(self, connection: Connection, row: Mapping[str, Any] | None, conversation_id: int) -> None:
        """Begin with the counters of a conversation's ``row``, which have to be right; ``None`` knows nothing."""
        self._connection = connection
        self._conversation_id = conversation_id
        self._known = {1: Sum()}
        if row is not None:
            self._learn(row)

    def __call__(self, number: int) -> Sum:
        """Return it of the turns before a number."""
        if number not in self._known:
            nearest = min(self._known, key=lambda one: abs(one - number))
            first, end = sorted((nearest, number))
            known, between = self._known[nearest], self.between(first, end - 1)
            self._known[number] = known + between if nearest < number else known - between
        return self._known[number]

    def between(self, first: int, last: int) -> Sum:
        """Return it of the turns from number ``first`` to ``last``; each of them is read."""
        return _visible(self._connection, self._conversation_id, first, last)

    def change(self, number: int, by: Sum) -> None:
        """Take into account that there is more to see of a turn, or less."""
        self._known = {one: known + by if number < one else known for one, known in self._known.items()}

    def _learn(self, row: Mapping[str, Any]) -> None:
        context_start, view_start = row["context_start"], row["view_start"]
        standing = {run["reason"]: Sum(run["turns"], run["messages"]) for run in row["standing_runs"]}
        if context_start > 1:
            hidden = _hidden_answers(self._connection, self._conversation_id, context_start)
            self._known[context_start] = standing["cleared"] - hidden
        if view_start > context_start:
            # What is visible between the two is held, or a summary stands for it.
            held = _held(self._connection, self._conversation_id, context_start, view_start - 1)
            summarised = standing.get("summarised", Sum())
            self._known[view_start] = self._known[context_start] + held + summarised
        in_view = Sum(row["visible_turns"], row["visible_messages"])
        self._known[row["turns"] + 1] = self._known[view_start] + in_view


class Recount:
    """Counts the view of a conversation after a change to it, or to its turns ``changing``, by their numbers.

    Made before the change, so that it knows the counters as they were and the turns that will change.
    """

    def __init__(self, connection: Connection, conversation_id: int, *changing: int) -> None:
        self._connection = connection
        self._conversation_id = conversation_id
        self._before = VisibleBefore(connection, _row(connection, conversation_id), conversation_id)
        self._were = {number: _visible(connection, conversation_id, number, number) for number in changing}

    def keep(self) -> None:
        """Keep what is counted now, and list what stands left out until the next change."""
        for number, before in self._were.items():
            now = _visible(self._connection, self._conversation_id, number, number)
            self._before.change(number, now - before)
        _keep(self._connection, self._conversation_id, self._before)


def recount(connection: Connection, conversation_id: int) -> None:
    """Count the view of a conversation of which nothing was counted yet."""
    _keep(connection, conversation_id, VisibleBefore(connection, None, conversation_id))


def _row(connection: Connection, conversation_id: int) -> dict[str, Any]:
    return {**connection.execute(_ROW, {"conversation": conversation_id}).mappings().one()}


def _keep(connection: Connection, conversation_id: int, visible_before: VisibleBefore) -> None:
    row = _row(connection, conversation_id)
    _mark_held(connection, row)
    set_values(connection, conversations, conversation_id, counted(connection, row, visible_before))
    connection.execute(_CHANGED, {"conversation": conversation_id})


def _mark_held(connection: Connection, row: Mapping[str, Any]) -> None:
    """Mark as held the turns that come along wherever the window begins.

    Those are the ones that are pinned, those that wait for a person, and those that a summary passed over.
    """
    covered = covered_by(connection, row["summary_id"])
    release, hold_marked, hold_passed_over = _marking(len(covered))
    view = {"conversation": row["id"], "context_start": row["context_start"], "view_start": row["view_start"]}
    for n, (first, last) in enumerate(covered):
        view |= {f"first_{n}": first, f"last_{n}": last}
    connection.execute(release, view)
    connection.execute(hold_marked, view)
    starts = [row["context_start"], *(last + 1 for _, last in covered)]
    ends = [*(first - 1 for first, _ in covered), row["view_start"] - 1]
    for first, last in zip(starts, ends, strict=True):
        if first <= last:
            connection.execute(hold_passed_over, view | {"first": first, "last": last})


@cache
def _marking(runs: int) -> tuple[Update, Update, Update]:
    """Return what takes the mark off turns, and sets it on those that a person marked, and on those in a gap.

    A summary stands for so many runs of turns.
    """
    number = turns.c.number
    edges = ((bindparam(f"first_{n}", type_=Integer), bindparam(f"last_{n}", type_=Integer)) for n in range(runs))
    covered = or_(false(), *(number.between(first, last) for first, last in edges))
    passed_over = (number < bindparam("view_start")) & ~covered
    held = turns.c.visible & (number >= bindparam("context_start")) & (MARKED | passed_over)
    hold = update(turns).where(_OWN, ~turns.c.held, held).values(held=True)
    return (
        update(turns).where(_OWN, HELD, ~held).values(held=False),
        hold.where(MARKED),
        hold.where(_BETWEEN),
    )


def messages_in(connection: Connection, turn_id: int) -> dict[str, int]:
    """Return how many messages each role has in a turn."""
    return dict.fromkeys(ROLES, 0) | dict(connection.execute(_MESSAGES_IN, {"turn": turn_id}).all())


def count_messages(connection: Connection, turn_id: int, sign: int = 1) -> None:
    """Count the messages of a turn that is over for its conversation; take them off with the ``sign`` -1."""
    more = {f"more_{role}": sign * count for role, count in messages_in(connection, turn_id).items()}
    connection.execute(_COUNT_MESSAGES, {"turn": turn_id} | more)


def counted(connection: Connection, row: Mapping[str, Any], visible_before: VisibleBefore) -> dict[str, Any]:
    """Return the counters of a conversation whose view begins, and whose turns end, as ``row`` says."""
    own, end, context_start = row["id"], row["turns"] + 1, row["context_start"]
    covered = covered_by(connection, row["summary_id"])
    in_view = visible_before(end) - visible_before(row["view_start"])
    runs = []
    if context_start > 1:
        cleared = visible_before(context_start) + _hidden_answers(connection, own, context_start)
        runs.append(_run("cleared", cleared, 1, context_start - 1))
        if _made_room(connection, own, context_start):
            runs[0]["made_room"] = True
    if covered:
        visible = (visible_before(last + 1) - visible_before(first) for first, last in covered)
        held = (_held(connection, own, first, last) for first, last in covered)
        summarised = sum(visible, Sum()) - sum(held, Sum())
        runs.append(_run("summarised", summarised, covered[0][0], covered[-1][1]))
    runs += _hidden_runs(connection, own, context_start, end)
    held_turns = _held(connection, own, 1, end - 1).turns
    names = ("visible_turns", "visible_messages", "held_turns", "standing_runs")
    return dict(zip(names, (in_view.turns, in_view.messages, held_turns, runs), strict=True))


def _hidden_answers(connection: Connection, conversation_id: int, before: int) -> Sum:
    """Return how much a person took out of the turns before a number."""
    return _sum(connection.execute(_HIDDEN_ANSWERS, {"conversation": conversation_id, "before": before}).all())


def _made_room(connection: Connection, conversation_id: int, context_start: int) -> bool:
    """Tell whether a reset moved the context start to make room for the turn there: after that was asked."""
    moved = select(func.max(history_changes.c.created_at)).where(
        history_changes.c.conversation_id == conversation_id, history_changes.c.kind.in_(("clear", "reset"))
    )
    asked = select(turns.c.id).where(
        turns.c.conversation_id == conversation_id,
        turns.c.number == context_start,
        turns.c.created_at < moved.scalar_subquery(),
    )
    return connection.execute(asked).first() is not None


def _hidden_runs(connection: Connection, conversation_id: int, first: int, end: int) -> list[dict[str, Any]]:
    """Return what no rule brings back of the turns from ``first`` to before ``end``: the newest turns one by one.

    Of those before them, a run for each reason.
    """
    asked = {"conversation": conversation_id, "first": first, "end": end, "limit": MAX_HIDDEN_LISTED}
    listed = connection.execute(_LISTED, asked).all()
    runs = [_run(reason, Sum(1, message_count), number, number) for number, message_count, reason in reversed(listed)]
    if len(listed) < MAX_HIDDEN_LISTED:
        return runs
    earlier = connection.execute(_BEFORE_THOSE, asked | {"end": listed[-1][0]}).all()
    return [_run(reason, Sum(count, int(said)), start, last) for reason, count, said, start, last in earlier] + runs


def covered_by(connection: Connection, summary_id: int | None) -> list[list[int]]:
    """Return the numbers of the turns that a summary stands for, as runs of [first, last]."""
    if summary_id is None:
        return []
    ((runs,),) = connection.execute(_COVERED, {"summary": summary_id}).all()
    covered: list[list[int]] = runs
    return covered


def _visible(connection: Connection, conversation_id: int, first: int, last: int) -> Sum:
    """Return how much the model could see of the turns from number ``first`` to ``last``."""
    return _sum(connection.execute(_VISIBLE, {"conversation": conversation_id, "first": first, "last": last}).all())


def _held(connection: Connection, conversation_id: int, first: int, last: int) -> Sum:
    """Return how much is held of the turns from number ``first`` to ``last``."""
    return _sum(connection.execute(_HELD, {"conversation": conversation_id, "first": first, "last": last}).all())


def _sum(rows: Sequence[Any]) -> Sum:
    ((count, said),) = rows
    return Sum(int(count), int(said))


def _run(reason: str, left: Sum, first: int, last: int) -> dict[str, Any]:
    return {"reason": reason, "turns": left.turns, "messages": left.messages, "first_turn": first, "last_turn": last}
