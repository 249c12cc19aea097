"""A short text for the state of a conversation: another one as soon as anything of it is new. Cheap to ask often."""

from __future__ import annotations

import hashlib

from sqlalchemy import bindparam, func, or_, select

from rag_assistant.storage.conversations.branching import branches_of
from rag_assistant.storage.conversations.conversations import load_conversation
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import history_changes, ratings, turns

_OF_TURNS = select(func.count(), func.max(turns.c.id), func.max(turns.c.finished_at)).where(
    turns.c.conversation_id == bindparam("conversation")
)
# Few turns are anything but answered once; each of these is named with what it is.
_OF_SPECIAL_TURNS = (
    select(
        turns.c.number,
        turns.c.status,
        turns.c.version,
        turns.c.versions,
        turns.c.pinned,
        turns.c.excluded,
        turns.c.purged,
        turns.c.waiting.is_not(None),
    )
    .where(turns.c.conversation_id == bindparam("conversation"))
    .where(
        or_(
            turns.c.status != "completed",
            turns.c.versions > 1,
            turns.c.pinned,
            turns.c.excluded,
            turns.c.purged,
            turns.c.waiting.is_not(None),
        )
    )
    .order_by(turns.c.number)
)
_RATED = (
    select(ratings.c.turn_id, ratings.c.rated_at)
    .join(turns, turns.c.id == ratings.c.turn_id)
    .where(turns.c.conversation_id == bindparam("conversation"))
    .order_by(ratings.c.turn_id)
)
_LAST_CHANGE = select(func.max(history_changes.c.id)).where(
    history_changes.c.conversation_id == bindparam("conversation")
)


class Etags:
    """Tells whether a conversation is as it was."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, conversation_id: int) -> str:
        """Return the tag of a conversation, as HTTP spells it. Raises ConversationNotFound."""
        with self._database.read() as connection:
            row = load_conversation(connection, conversation_id)
            here = {"conversation": conversation_id}
            of_turns = connection.execute(_OF_TURNS, here).one()
            special = connection.execute(_OF_SPECIAL_TURNS, here).all()
            rated = connection.execute(_RATED, here).all()
            last_change = connection.execute(_LAST_CHANGE, here).scalar()
            branches = connection.execute(branches_of(conversation_id)).all()
        state = repr((sorted(row.items()), tuple(of_turns), special, rated, last_change, branches))
        return f'"{hashlib.sha256(state.encode()).hexdigest()[:20]}"'
