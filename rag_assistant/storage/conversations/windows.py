"""The queries for the window: the newest turns of a conversation's view, and those that come along. Built once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, Subquery, bindparam, false, null, select, union

from rag_assistant.records import Message, PastTurn
from rag_assistant.storage.conversations.pictures import IMAGES, load_pictures, message_of
from rag_assistant.storage.tables import HELD, messages, turns


def _newest(limited: bool) -> Select[Any]:
    newest = (
        select(turns.c.id, turns.c.number)
        .where(turns.c.conversation_id == bindparam("conversation"))
        .where(turns.c.visible, turns.c.number.between(bindparam("first"), bindparam("before") - 1))
        .order_by(turns.c.number.desc())
    )
    return newest.limit(bindparam("limit")) if limited else newest


def _messages_of(chosen: Subquery) -> Select[Any]:
    """Return the query for the messages of turns of which none is held."""
    return (
        select(chosen.c.number, false(), null(), messages.c.role, messages.c.content, messages.c.extra)
        .join_from(chosen, messages, messages.c.turn_id == chosen.c.id)
        .order_by(chosen.c.number, messages.c.position)
    )


def _messages_with_marks(chosen: Subquery) -> Select[Any]:
    """Return the query for the messages of turns, with whether they are pinned and what they wait for."""
    return (
        select(turns.c.number, turns.c.held, turns.c.waiting, messages.c.role, messages.c.content, messages.c.extra)
        .join_from(chosen, turns, turns.c.id == chosen.c.id)
        .join(messages, messages.c.turn_id == chosen.c.id)
        .order_by(turns.c.number, messages.c.position)
    )


def _and_held(newest: Select[Any]) -> Subquery:
    held = select(turns.c.id).where(
        turns.c.conversation_id == bindparam("conversation"),
        HELD,
        turns.c.number < bindparam("before"),
    )
    return union(select(newest.subquery().c.id), held).subquery()


WINDOW, WHOLE = (_messages_of(_newest(limited).subquery()) for limited in (True, False))
WINDOW_AND_HELD, WHOLE_AND_HELD = (_messages_with_marks(_and_held(_newest(limited))) for limited in (True, False))
WHOLE_WITH_MARKS = _messages_with_marks(_newest(limited=False).subquery())


def past_turns(connection: Connection, rows: Sequence[Any]) -> list[PastTurn]:
    """Return the turns of the rows that one of these queries gave."""
    pictures = load_pictures(connection, (key for *_, extra in rows for key in (extra or {}).get(IMAGES, ())))
    messages_of: dict[int, list[Message]] = {}
    marks: dict[int, tuple[bool, str | None]] = {}
    for number, pinned, waiting, role, content, extra in rows:
        messages_of.setdefault(number, []).append(message_of(role, content, extra, pictures))
        marks[number] = (pinned, waiting["call_id"] if waiting else None)
    return [PastTurn(number, tuple(spoken), *marks[number]) for number, spoken in messages_of.items()]
