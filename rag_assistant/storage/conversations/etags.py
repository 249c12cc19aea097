"""A short text for the state of a conversation: another one as soon as anything of it is new. Cheap to ask often."""

from __future__ import annotations

import hashlib

from rag_assistant.storage.conversations.branching import BRANCHES
from rag_assistant.storage.conversations.conversations import load_conversation
from rag_assistant.storage.database import Database


class Etags:
    """Tells whether a conversation is as it was.

    Its row says so: each question and each answer moves its counters or ``updated_at``, everything else ``changes``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, conversation_id: int) -> str:
        """Return the tag of a conversation, as HTTP spells it. Raises ConversationNotFound."""
        with self._database.read() as connection:
            row = load_conversation(connection, conversation_id)
            branches = list(map(tuple, connection.execute(BRANCHES, {"origin": conversation_id})))
        state = repr((sorted(row.items()), branches))
        return f'"{hashlib.sha256(state.encode()).hexdigest()[:20]}"'
