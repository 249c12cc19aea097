"""A short text for the state of a conversation: another one as soon as anything of it is new. Cheap to ask often."""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, select

from rag_assistant.storage.branching import branches_of
from rag_assistant.storage.conversations import load_conversation
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import history_changes, turns


def _marked(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    """Return a sum that moves with each turn that gets a mark or loses it, also where another loses or gets it."""
    return func.sum(case((condition, turns.c.number * turns.c.number), else_=0))


_OF_TURNS = select(
    func.max(turns.c.id),
    func.max(turns.c.finished_at),
    func.sum(turns.c.version * turns.c.number),
    func.sum(turns.c.versions * turns.c.number),
    _marked(turns.c.pinned),
    _marked(turns.c.excluded),
    _marked(turns.c.purged),
    _marked(turns.c.waiting.is_not(None)),
    _marked(turns.c.status == "running"),
    _marked(turns.c.status == "failed"),
).where(turns.c.conversation_id == bindparam("conversation"))
_LAST_CHANGE = select(func.max(history_changes.c.id)).where(
    history_changes.c.conversation_id == bindparam("conversation")
)


class StateTags:
    """Tells whether a conversation is as it was."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, conversation_id: int) -> str:
        """Return the tag of a conversation, as HTTP spells it. Raises ConversationNotFound."""
        with self._database.read() as connection:
            row = load_conversation(connection, conversation_id)
            of_turns = connection.execute(_OF_TURNS, {"conversation": conversation_id}).one()
            last_change = connection.execute(_LAST_CHANGE, {"conversation": conversation_id}).scalar()
            branches = connection.execute(branches_of(conversation_id)).all()
        state = repr((sorted(row.items()), tuple(of_turns), last_change, branches))
        return f'"{hashlib.sha256(state.encode()).hexdigest()[:20]}"'
