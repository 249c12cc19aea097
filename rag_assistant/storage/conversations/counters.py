"""A conversation's counters: its messages, and what the model sees, counted when that changes, never for a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Select, bindparam, case, exists, false, func, or_, select, update

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

# A turn without an answer was never completed, however it is marked, also if it called tools.
_LAST = messages.c.turn_id == turns.c.id, messages.c.position == turns.c.message_count - 1
ANSWERED = turns.c.visible | (
    (turns.c.excluded | turns.c.purged) & exists().where(*_LAST, messages.c.role == "assistant")
)
WHY_HIDDEN = case(
    (turns.c.status == "erased", "erased"), (~ANSWERED, "failed"), (turns.c.purged, "purged"), else_="excluded"
)

_OWN = turns.c.conversation_id == bindparam("conversation")
_BETWEEN = turns.c.number.between(bindparam("first"), bindparam("last"))
_COUNT = select(func.count(), func.coalesce(func.sum(turns.c.message_count), 0)).where(_OWN, _BETWEEN)
_VISIBLE, _HELD = _COUNT.where(turns.c.visible), _COUNT.where(HELD)
_UNMARKED = _VISIBLE.where(~MARKED)
# Excluded by a person.
_HIDDEN_ANSWERS = _COUNT.where(HIDDEN, ANSWERED)
# What was cleared is not listed, unless it never had an answer.
_LISTED_HERE = (turns.c.number >= bindparam("context_start")) | ~ANSWERED
_LEFT_OUT = _OWN, _BETWEEN, HIDDEN, turns.c.status != "running", _LISTED_HERE
_LISTED = (
    select(turns.c.number, turns.c.message_count, WHY_HIDDEN)
    .where(*_LEFT_OUT)
    .order_by(turns.c.number.desc())
    .limit(bindparam("limit"))
)
_BEFORE_THOSE = (
    select(
        WHY_HIDDEN, func.count(), func.sum(turns.c.message_count), func.min(turns.c.number), func.max(turns.c.number)
    )
    .where(*_LEFT_OUT)
    .group_by(WHY_HIDDEN)
)
_ROW = select(conversations).where(conversations.c.id == bindparam("conversation"))
_COVERED = select(summaries.c.covered).where(summaries.c.id == bindparam("summary"))


class Sum(Struct, frozen=True):
    """A number of turns and of their messages."""

    turns: int = 0
    messages: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.turns + other.turns, self.messages + other.messages)

    def __sub__(self, other: Sum) -> Sum:
        return Sum(self.turns - other.turns, self.messages - other.messages)


def recount(connection: Connection, conversation_id: int) -> None:
    """Update the view counters after a change to a conversation or its turns, and list what is left out."""
    row = {**connection.execute(_ROW, {"conversation": conversation_id}).mappings().one()}
    # Held are the turns that are read wherever the view begins: pinned, awaiting confirmation, or skipped by a summary.
    covered, number = covered_by(connection, row["summary_id"]), turns.c.number
    passed_over = (number < row["view_start"]) & ~or_(
        false(), *(number.between(first, last) for first, last in covered)
    )
    held = turns.c.visible & (number >= row["context_start"]) & (MARKED | passed_over)
    own = turns.c.conversation_id == row["id"]
    hold = update(turns).where(own, ~turns.c.held, held).values(held=True)
    connection.execute(update(turns).where(own, HELD, ~held).values(held=False))
    connection.execute(hold.where(MARKED))
    for first, last in _gaps(row, covered):
        connection.execute(hold.where(number.between(first, last)))
    counters = counted(connection, row) | {"changes": conversations.c.changes + 1}
    set_values(connection, conversations, conversation_id, counters)


def _gaps(row: Mapping[str, Any], covered: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the numbers before the view that a summary skipped, as runs of (first, last)."""
    starts = [row["context_start"], *(last + 1 for _, last in covered)]
    ends = [*(first - 1 for first, _ in covered), row["view_start"] - 1]
    return [(first, last) for first, last in zip(starts, ends, strict=True) if first <= last]


def counted(connection: Connection, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counters of a conversation whose view and turns are as ``row`` says."""
    own, last_turn, context_start = row["id"], row["turns"], row["context_start"]
    covered = covered_by(connection, row["summary_id"])
    in_view = _sum(connection, _VISIBLE, own, row["view_start"], last_turn)
    in_view = sum((_sum(connection, _UNMARKED, own, *gap) for gap in _gaps(row, covered)), in_view)
    runs = []
    if context_start > 1:
        visible, hidden = (_sum(connection, query, own, 1, context_start - 1) for query in (_VISIBLE, _HIDDEN_ANSWERS))
        runs.append(_run("cleared", visible + hidden, 1, context_start - 1))
        moved = select(func.max(history_changes.c.created_at)).where(
            history_changes.c.conversation_id == own, history_changes.c.kind.in_(("clear", "reset"))
        )
        of_this = turns.c.conversation_id == own, turns.c.number == context_start
        asked_before = select(turns.c.id).where(*of_this, turns.c.created_at < moved.scalar_subquery())
        if connection.execute(asked_before).first() is not None:  # It made room for the question that followed.
            runs[0]["made_room"] = True
    if covered:
        seen = sum((_sum(connection, _VISIBLE, own, first, last) for first, last in covered), Sum())
        held = sum((_sum(connection, _HELD, own, first, last) for first, last in covered), Sum())
        runs.append(_run("summarised", seen - held, covered[0][0], covered[-1][1]))
    runs += _hidden_runs(connection, own, context_start, last_turn)
    held_turns = _sum(connection, _HELD, own, 1, last_turn).turns
    names = ("visible_turns", "visible_messages", "held_turns", "standing_runs")
    return dict(zip(names, (in_view.turns, in_view.messages, held_turns, runs), strict=True))


def _hidden_runs(connection: Connection, conversation_id: int, context_start: int, last: int) -> list[dict[str, Any]]:
    """Return the hidden turns up to ``last``: the newest individually, those before as a run per reason."""
    params = {"conversation": conversation_id, "context_start": context_start, "first": 1, "last": last}
    params["limit"] = MAX_HIDDEN_LISTED
    listed = connection.execute(_LISTED, params).all()
    runs = [_run(reason, Sum(1, message_count), number, number) for number, message_count, reason in reversed(listed)]
    if len(listed) < MAX_HIDDEN_LISTED:
        return runs
    earlier = connection.execute(_BEFORE_THOSE, params | {"last": listed[-1][0] - 1}).all()
    return [
        _run(reason, Sum(count, int(message_total)), start, last)
        for reason, count, message_total, start, last in earlier
    ] + runs


def covered_by(connection: Connection, summary_id: int | None) -> list[list[int]]:
    """Return the turn numbers a summary covers, as runs of [first, last]."""
    if summary_id is None:
        return []
    ((runs,),) = connection.execute(_COVERED, {"summary": summary_id}).all()
    covered: list[list[int]] = runs
    return covered


def _sum(connection: Connection, query: Select[Any], conversation_id: int, first: int, last: int) -> Sum:
    """Count the turns of a query from number ``first`` to ``last``, and their messages."""
    span = {"conversation": conversation_id, "first": first, "last": last}
    count, message_count = connection.execute(query, span).one()
    return Sum(int(count), int(message_count))


def _run(reason: str, left: Sum, first: int, last: int) -> dict[str, Any]:
    return {"reason": reason, "turns": left.turns, "messages": left.messages, "first_turn": first, "last_turn": last}
