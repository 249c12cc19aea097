"""Conversations: made, listed, found, named, put away, brought back and erased."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from rag_assistant.errors import ConversationBusy, ConversationNotFound
from rag_assistant.records import UNSET, Conversation, Summary, Unset
from rag_assistant.storage.database import Database
from rag_assistant.storage.keywords import TURN_WORDS
from rag_assistant.storage.tables import conversations, now, summaries, turns

LONGEST_TITLE = 200
MOST_HITS = 1000

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
            return conversation_of(connection, load_conversation(connection, insert_conversation(connection, title)))

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation. Raises ConversationNotFound, also for one that was deleted."""
        with self._database.read() as connection:
            return conversation_of(connection, load_conversation(connection, conversation_id))

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
            return [conversation_of(connection, row) for row in rows.mappings().all()]

    def find(self, words: Sequence[str], limit: int) -> list[Conversation]:
        """Return up to ``limit`` conversations with a turn that holds any of ``words``, the best hit first."""
        if not words:
            return []
        with self._database.read() as connection:
            hits = [turn_id for turn_id, _ in TURN_WORDS.best(connection, words, MOST_HITS)]
            rows = connection.execute(
                select(turns.c.id.label("turn_id"), conversations)
                .join_from(turns, conversations, conversations.c.id == turns.c.conversation_id)
                .where(turns.c.id.in_(hits), conversations.c.deleted_at.is_(None))
            ).mappings()
            by_turn = {row["turn_id"]: row for row in rows}
            best: dict[int, RowMapping] = {}
            for hit in hits:
                if hit in by_turn:
                    best.setdefault(by_turn[hit]["id"], by_turn[hit])
            return [conversation_of(connection, row) for row in list(best.values())[:limit]]

    def change(
        self, conversation_id: int, *, title: str | None = None, own: Mapping[str, Any] | None = None
    ) -> Conversation:
        """Rename a conversation, set what it decides for itself (``own``), and return it.

        In ``own``, a name with ``UNSET`` is forgotten, so that the settings decide again. Raises ConversationNotFound.
        """
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id)
            values: dict[str, Any] = {} if title is None else {"title": title}
            if own:
                kept = row["overrides"] | dict(own)
                values["overrides"] = {name: value for name, value in kept.items() if not isinstance(value, Unset)}
            if values:
                connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(values))
            return conversation_of(connection, load_conversation(connection, conversation_id))

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
            return conversation_of(connection, load_conversation(connection, conversation_id))

    def purge(self, conversation_id: int) -> None:
        """Erase a conversation with everything that was said in it, from the file, too. There is no way back.

        Raises ConversationNotFound if there never was one, ConversationBusy while it answers.
        """
        with self._database.write() as connection:
            found = connection.execute(select(conversations.c.id).where(conversations.c.id == conversation_id)).first()
            if found is None:
                raise ConversationNotFound(conversation_id)
            own = turns.c.conversation_id == conversation_id
            if connection.execute(select(turns.c.id).where(own, turns.c.status == "running")).first() is not None:
                raise ConversationBusy(conversation_id)
            TURN_WORDS.drop(connection, select(turns.c.id).where(own))
            connection.execute(delete(conversations).where(conversations.c.id == conversation_id))
        self._database.forget_deleted()


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


def conversation_of(connection: Connection, row: RowMapping) -> Conversation:
    """Return the record of a row, with its summary."""
    own = row["overrides"]
    return Conversation(
        id=row["id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        turns=row["turns"],
        visible_turns=row["visible_turns"],
        visible_messages=row["visible_messages"],
        max_history_turns=own.get("max_history_turns", UNSET),
        history_strategy=own.get("history_strategy"),
        on_overflow=own.get("on_overflow"),
        context_start=row["context_start"],
        view_start=row["view_start"],
        decided_until=row["decided_until"],
        held_turns=row["held_turns"],
        standing_runs=tuple(row["standing_runs"]),
        summary=None if row["summary_id"] is None else _load_summary(connection, row["summary_id"]),
        branched_from=row["branched_from"],
    )


def _load_summary(connection: Connection, summary_id: int) -> Summary:
    row = connection.execute(select(summaries).where(summaries.c.id == summary_id)).mappings().one()
    return Summary(**{name: row[name] for name in Summary.__slots__})
