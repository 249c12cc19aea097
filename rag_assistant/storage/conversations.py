"""Conversations: made, listed, named, limited, put away and brought back. Nothing here touches a turn's content."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rag_assistant.errors import ConversationNotFound
from rag_assistant.records import UNSET, Conversation, Unset
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import conversations, now

LONGEST_TITLE = 200

_INSERT = insert(conversations).returning(conversations.c.id)
_CONVERSATION = select(conversations).where(
    conversations.c.id == bindparam("conversation"), conversations.c.deleted_at.is_(None)
)


class ConversationManager:
    """Keeps the conversations themselves; their turns are kept by TurnStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, title: str) -> Conversation:
        """Return a new, empty conversation."""
        with self._database.write() as connection:
            return as_conversation(load_conversation(connection, insert_conversation(connection, title)))

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation. Raises ConversationNotFound, also for one that was deleted."""
        with self._database.read() as connection:
            return as_conversation(load_conversation(connection, conversation_id))

    def page(self, limit: int, before_id: int | None = None) -> list[Conversation]:
        """Return up to ``limit`` conversations, the latest used first, behind the one named ``before_id``."""
        query = select(conversations).where(conversations.c.deleted_at.is_(None))
        with self._database.read() as connection:
            if before_id is not None:
                last = load_conversation(connection, before_id)
                query = query.where(
                    (conversations.c.updated_at < last["updated_at"])
                    | ((conversations.c.updated_at == last["updated_at"]) & (conversations.c.id < last["id"]))
                )
            rows = connection.execute(
                query.order_by(conversations.c.updated_at.desc(), conversations.c.id.desc()).limit(limit)
            )
            return [as_conversation(row) for row in rows.mappings()]

    def change(
        self, conversation_id: int, *, title: str | None = None, max_history_turns: int | Unset | None = UNSET
    ) -> Conversation:
        """Rename a conversation or set its own window, and return it. Raises ConversationNotFound."""
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id)
            values: dict[str, Any] = {} if title is None else {"title": title}
            if not isinstance(max_history_turns, Unset):
                values["overrides"] = row["overrides"] | {"max_history_turns": max_history_turns}
            if values:
                connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(values))
            return as_conversation(load_conversation(connection, conversation_id))

    def follow_settings(self, conversation_id: int) -> Conversation:
        """Forget the conversation's own window, so that the settings decide again. Raises ConversationNotFound."""
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id)
            overrides = {name: value for name, value in row["overrides"].items() if name != "max_history_turns"}
            connection.execute(
                update(conversations).where(conversations.c.id == conversation_id).values(overrides=overrides)
            )
            return as_conversation(load_conversation(connection, conversation_id))

    def delete(self, conversation_id: int) -> None:
        """Put a conversation away: it is not found any more until ``restore``. Raises ConversationNotFound."""
        with self._database.write() as connection:
            load_conversation(connection, conversation_id)
            connection.execute(
                update(conversations).where(conversations.c.id == conversation_id).values(deleted_at=now())
            )

    def restore(self, conversation_id: int) -> Conversation:
        """Bring a deleted conversation back, whole. Raises ConversationNotFound if there never was one."""
        with self._database.write() as connection:
            connection.execute(
                update(conversations).where(conversations.c.id == conversation_id).values(deleted_at=None)
            )
            return as_conversation(load_conversation(connection, conversation_id))


def insert_conversation(connection: Connection, title: str) -> int:
    """Insert an empty conversation and return its id."""
    moment = now()
    conversation_id: int = connection.execute(
        _INSERT,
        {
            "title": title[:LONGEST_TITLE],
            "created_at": moment,
            "updated_at": moment,
            "overrides": {},
            "turns": 0,
            "visible_turns": 0,
            "visible_messages": 0,
        },
    ).scalar_one()
    return conversation_id


def load_conversation(connection: Connection, conversation_id: int, *, lock: bool = False) -> RowMapping:
    """Return a conversation's row, locked against other writers if asked. Raises ConversationNotFound."""
    query = _CONVERSATION.with_for_update() if lock else _CONVERSATION
    row = connection.execute(query, {"conversation": conversation_id}).mappings().first()
    if row is None:
        raise ConversationNotFound(conversation_id)
    return row


def as_conversation(row: RowMapping) -> Conversation:
    """Return the record of a row."""
    return Conversation(
        id=row["id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        turns=row["turns"],
        visible_turns=row["visible_turns"],
        visible_messages=row["visible_messages"],
        max_history_turns=row["overrides"].get("max_history_turns", UNSET),
    )
