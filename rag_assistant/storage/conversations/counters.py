"""The counters of a conversation: what was said in it, and what of it is in the model's view.

The view is counted after a change of what the model may see, never for a question. Turns that it leaves as they were
are not read again: how much is visible before a turn is counted from the nearest turn for which that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, bindparam, case, false, func, or_, select, update

from rag_assistant.storage.prepared import Prepared
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
_MESSAGES_IN = Prepared(
    select(messages.c.role, func.count()).where(messages.c.turn_id == bindparam("turn")).group_by(messages.c.role)
)
_OF_TURN = select(turns.c.conversation_id).where(turns.c.id == bindparam("turn")).scalar_subquery()
_COUNTED = func.count(), func.coalesce(func.sum(turns.c.message_count), 0)
_VISIBLE = Prepared(
    select(*_COUNTED).where(
        turns.c.conversation_id == bindparam("conversation"),
        turns.c.visible,
        turns.c.number.between(bindparam("first"), bindparam("last")),
    )
)
_ROW = Prepared(select(conversations).where(conversations.c.id == bindparam("conversation")))
_COUNT_MESSAGES = update(conversations).where(conversations.c.id == _OF_TURN).values(MORE_MESSAGES)


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
        self._own = turns.c.conversation_id == conversation_id
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
            hidden = _hidden_answers(self._connection, self._own, context_start)
            self._known[context_start] = standing["cleared"] - hidden
        if view_start > context_start:
            # What is visible between the two is held, or a summary stands for it.
            before = turns.c.number.between(context_start, view_start - 1)
            held = _count(self._connection, self._own, HELD, before)
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
    (row,) = _ROW.mappings(connection, {"conversation": conversation_id})
    return row


def _keep(connection: Connection, conversation_id: int, visible_before: VisibleBefore) -> None:
    row = _row(connection, conversation_id)
    _mark_held(connection, row)
    values = counted(connection, row, visible_before) | {"changes": conversations.c.changes + 1}
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(values))


def _mark_held(connection: Connection, row: Mapping[str, Any]) -> None:
    """Mark as held the turns that come along wherever the window begins.

    Those are the ones that are pinned, those that wait for a person, and those that a summary passed over.
    """
    own, number = turns.c.conversation_id == row["id"], turns.c.number
    covered = covered_by(connection, row["summary_id"])
    passed_over = (number < row["view_start"]) & ~_within(covered)
    held = turns.c.visible & (number >= row["context_start"]) & (MARKED | passed_over)
    connection.execute(update(turns).where(own, HELD, ~held).values(held=False))
    connection.execute(update(turns).where(own, MARKED, ~turns.c.held, held).values(held=True))
    starts = [row["context_start"], *(last + 1 for _, last in covered)]
    ends = [*(first - 1 for first, _ in covered), row["view_start"] - 1]
    for first, last in zip(starts, ends, strict=True):
        if first <= last:
            gap = number.between(first, last)
            connection.execute(update(turns).where(own, gap, ~turns.c.held, held).values(held=True))


def messages_in(connection: Connection, turn_id: int) -> dict[str, int]:
    """Return how many messages each role has in a turn."""
    return dict.fromkeys(ROLES, 0) | dict(_MESSAGES_IN.rows(connection, {"turn": turn_id}))


def count_messages(connection: Connection, turn_id: int, sign: int = 1) -> None:
    """Count the messages of a turn that is over for its conversation; take them off with the ``sign`` -1."""
    more = {f"more_{role}": sign * count for role, count in messages_in(connection, turn_id).items()}
    connection.execute(_COUNT_MESSAGES, {"turn": turn_id} | more)


def counted(connection: Connection, row: Mapping[str, Any], visible_before: VisibleBefore) -> dict[str, Any]:
    """Return the counters of a conversation whose view begins, and whose turns end, as ``row`` says."""
    end, context_start = row["turns"] + 1, row["context_start"]
    own = (turns.c.conversation_id == row["id"]) & (turns.c.number < end)
    covered = covered_by(connection, row["summary_id"])
    in_view = visible_before(end) - visible_before(row["view_start"])
    runs = []
    if context_start > 1:
        cleared = visible_before(context_start) + _hidden_answers(connection, own, context_start)
        runs.append(_run("cleared", cleared, 1, context_start - 1))
        if _made_room(connection, row["id"], context_start):
            runs[0]["made_room"] = True
    if covered:
        held = _count(connection, own, HELD, _within(covered))
        summarised = sum((visible_before(last + 1) - visible_before(first) for first, last in covered), Sum()) - held
        runs.append(_run("summarised", summarised, covered[0][0], covered[-1][1]))
    runs += _hidden_runs(connection, own, turns.c.number >= context_start)
    held_turns = _count(connection, own, HELD).turns
    names = ("visible_turns", "visible_messages", "held_turns", "standing_runs")
    return dict(zip(names, (in_view.turns, in_view.messages, held_turns, runs), strict=True))


def _hidden_answers(connection: Connection, own: ColumnElement[bool], before: int) -> Sum:
    """Return how much a person took out of the turns before a number."""
    return _count(connection, own, HIDDEN, ANSWERED, turns.c.number < before)


def _within(covered: Iterable[Sequence[int]]) -> ColumnElement[bool]:
    """Return the condition that a turn is one of those in these runs."""
    return or_(false(), *(turns.c.number.between(first, last) for first, last in covered))


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


def _hidden_runs(connection: Connection, *conditions: Any) -> list[dict[str, Any]]:
    """Return what no rule brings back: the newest turns one by one, of those before them a run for each reason."""
    hidden = *conditions, HIDDEN, turns.c.status != "running"
    listed = connection.execute(
        select(turns.c.number, turns.c.message_count, WHY_HIDDEN)
        .where(*hidden)
        .order_by(turns.c.number.desc())
        .limit(MAX_HIDDEN_LISTED)
    ).all()
    runs = [_run(reason, Sum(1, message_count), number, number) for number, message_count, reason in reversed(listed)]
    if len(listed) < MAX_HIDDEN_LISTED:
        return runs
    number = turns.c.number
    earlier = connection.execute(
        select(WHY_HIDDEN, func.count(), func.sum(turns.c.message_count), func.min(number), func.max(number))
        .where(*hidden, number < listed[-1].number)
        .group_by(WHY_HIDDEN)
    )
    return [_run(reason, Sum(count, int(said)), first, last) for reason, count, said, first, last in earlier] + runs


def covered_by(connection: Connection, summary_id: int | None) -> list[list[int]]:
    """Return the numbers of the turns that a summary stands for, as runs of [first, last]."""
    if summary_id is None:
        return []
    runs: list[list[int]] = connection.execute(
        select(summaries.c.covered).where(summaries.c.id == summary_id)
    ).scalar_one()
    return runs


def _visible(connection: Connection, conversation_id: int, first: int, last: int) -> Sum:
    """Return how much the model could see of the turns from number ``first`` to ``last``."""
    asked = {"conversation": conversation_id, "first": first, "last": last}
    ((count, said),) = _VISIBLE.rows(connection, asked)
    return Sum(int(count), int(said))


def _count(connection: Connection, *conditions: Any) -> Sum:
    """Return how many turns fulfil all conditions, and how many messages they have."""
    row = connection.execute(select(*_COUNTED).where(*conditions)).one()
    return Sum(int(row[0]), int(row[1]))


def _run(reason: str, left: Sum, first: int, last: int) -> dict[str, Any]:
    return {"reason": reason, "turns": left.turns, "messages": left.messages, "first_turn": first, "last_turn": last}
