"""What a person takes of the server at present."""

from __future__ import annotations

from sqlalchemy import func, select

from rag_assistant.storage.database import Database, person_of
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import conversations, documents, libraries, turns


class UsageStore:
    """Counts what belongs to the person of its database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def running(self) -> int:
        """Return how many answers are being written."""
        query = (
            select(func.count()).select_from(turns).join(conversations, conversations.c.id == turns.c.conversation_id)
        )
        with self._database.read() as connection:
            running = turns.c.status == "running", own_conversations(connection)
            return connection.execute(query.where(*running)).scalar_one()

    def stored_bytes(self) -> int:
        """Return how many bytes the files in the person's own libraries have."""
        with self._database.read() as connection:
            own = select(libraries.c.id).where(libraries.c.person_id == person_of(connection))
            query = select(func.coalesce(func.sum(documents.c.size_bytes), 0)).where(documents.c.library_id.in_(own))
            return int(connection.execute(query).scalar_one())
