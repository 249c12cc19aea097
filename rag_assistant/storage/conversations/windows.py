"""The window: the newest turns of a conversation's view, and those that come along. No other turn is read."""

from __future__ import annotations

from sqlalchemy import Connection, select, union

from rag_assistant.records import MAX_INT32, Conversation, Message, PastTurn
from rag_assistant.storage.conversations.pictures import IMAGES, load_pictures, message_of
from rag_assistant.storage.tables import HELD, messages, turns


def turns_in_view(
    connection: Connection, conversation: Conversation, first: int, before: int, newest: int | None, *, with_held: bool
) -> list[PastTurn]:
    """Return the ``newest`` turns from number ``first`` to before another one that are in the view, oldest first.

    ``None`` returns them all; ``with_held`` also those that come along wherever the window begins.
    """
    own = turns.c.conversation_id == conversation.id
    visible = select(turns.c.id).where(own, turns.c.visible, turns.c.number.between(first, before - 1))
    if newest is not None:
        visible = visible.order_by(turns.c.number.desc()).limit(min(newest, MAX_INT32))
    chosen = select(visible.subquery().c.id)
    held = select(turns.c.id).where(own, HELD, turns.c.number < before)
    those = (union(chosen, held) if with_held else chosen).subquery()
    query = (
        select(turns.c.number, turns.c.held, turns.c.waiting, messages.c.role, messages.c.content, messages.c.extra)
        .join_from(those, turns, turns.c.id == those.c.id)
        .join(messages, messages.c.turn_id == those.c.id)
        .order_by(turns.c.number, messages.c.position)
    )
    rows = connection.execute(query).all()
    pictures = load_pictures(connection, (key for row in rows for key in (row.extra or {}).get(IMAGES, ())))
    messages_of: dict[int, list[Message]] = {}
    marks: dict[int, tuple[bool, str | None]] = {}
    for number, pinned, waiting, role, content, extra in rows:
        messages_of.setdefault(number, []).append(message_of(role, content, extra, pictures))
        marks[number] = (pinned, waiting["call_id"] if waiting else None)
    return [PastTurn(number, tuple(spoken), *marks[number]) for number, spoken in messages_of.items()]
