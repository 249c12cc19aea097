"""The counters of a conversation: what was said in it, and what of it is in the model's view.

The view is counted anew after a change of what the model may see, never for a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, false, func, or_, select, update

from rag_assistant.storage.prepared import Prepared
from rag_assistant.storage.tables import HIDDEN, conversations, history_changes, messages, summaries, turns

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
_COUNT_MESSAGES = update(conversations).where(conversations.c.id == _OF_TURN).values(MORE_MESSAGES)


def recount(connection: Connection, conversation_id: int) -> None:
    """Count what is in the model's view of a conversation, and list what stands left out until the next change.

    Turns that come along wherever the window begins are marked as held: those that are pinned, those that wait for a
    person, and those that a summary passed over.
    """
    row = connection.execute(select(conversations).where(conversations.c.id == conversation_id)).mappings().one()
    own = turns.c.conversation_id == conversation_id
    in_summary = _within(covered_by(connection, row["summary_id"]))
    passed_over = (turns.c.number < row["view_start"]) & ~in_summary
    held = (
        turns.c.visible
        & (turns.c.number >= row["context_start"])
        & (turns.c.pinned | turns.c.waiting.is_not(None) | passed_over)
    )
    connection.execute(update(turns).where(own, turns.c.held | held).values(held=held))
    values = counted(connection, dict(row), own) | {"changes": conversations.c.changes + 1}
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(values))


def messages_in(connection: Connection, turn_id: int) -> dict[str, int]:
    """Return how many messages each role has in a turn."""
    return dict.fromkeys(ROLES, 0) | dict(_MESSAGES_IN.rows(connection, {"turn": turn_id}))


def count_messages(connection: Connection, turn_id: int, sign: int = 1) -> None:
    """Count the messages of a turn that is over for its conversation; take them off with the ``sign`` -1."""
    more = {f"more_{role}": sign * count for role, count in messages_in(connection, turn_id).items()}
    connection.execute(_COUNT_MESSAGES, {"turn": turn_id} | more)


def counted(connection: Connection, row: Mapping[str, Any], own: ColumnElement[bool]) -> dict[str, Any]:
    """Return the counters of a conversation whose view begins as ``row`` says, of its turns that are ``own``."""
    covered = covered_by(connection, row["summary_id"])
    in_view = _count(connection, own, turns.c.visible, turns.c.number >= row["view_start"])
    runs = []
    if row["context_start"] > 1:
        cleared = _count(connection, own, ANSWERED, turns.c.number < row["context_start"])
        runs.append(_run("cleared", *cleared, 1, row["context_start"] - 1))
        if _made_room(connection, row["id"], row["context_start"]):
            runs[0]["made_room"] = True
    if covered:
        summarised = _count(connection, own, turns.c.visible, ~turns.c.held, _within(covered))
        runs.append(_run("summarised", *summarised, covered[0][0], covered[-1][1]))
    runs += _hidden_runs(connection, own, turns.c.number >= row["context_start"])
    held_turns, _ = _count(connection, own, turns.c.held)
    names = ("visible_turns", "visible_messages", "held_turns", "standing_runs")
    return dict(zip(names, (*in_view, held_turns, runs), strict=True))


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
    runs = [_run(reason, 1, message_count, number, number) for number, message_count, reason in reversed(listed)]
    if len(listed) < MAX_HIDDEN_LISTED:
        return runs
    number = turns.c.number
    earlier = connection.execute(
        select(WHY_HIDDEN, func.count(), func.sum(turns.c.message_count), func.min(number), func.max(number))
        .where(*hidden, number < listed[-1].number)
        .group_by(WHY_HIDDEN)
    )
    return [_run(reason, count, int(said), first, last) for reason, count, said, first, last in earlier] + runs


def covered_by(connection: Connection, summary_id: int | None) -> list[list[int]]:
    """Return the numbers of the turns that a summary stands for, as runs of [first, last]."""
    if summary_id is None:
        return []
    runs: list[list[int]] = connection.execute(
        select(summaries.c.covered).where(summaries.c.id == summary_id)
    ).scalar_one()
    return runs


def _count(connection: Connection, *conditions: Any) -> tuple[int, int]:
    """Return how many turns fulfil all conditions, and how many messages they have."""
    row = connection.execute(
        select(func.count(), func.coalesce(func.sum(turns.c.message_count), 0)).where(*conditions)
    ).one()
    return int(row[0]), int(row[1])


def _run(reason: str, turns_left: int, messages_left: int, first: int, last: int) -> dict[str, Any]:
    return {"reason": reason, "turns": turns_left, "messages": messages_left, "first_turn": first, "last_turn": last}
