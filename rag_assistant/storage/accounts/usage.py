"""What a person takes of the server at present."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from rag_assistant.storage.database import Database, person_of
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import conversations, documents, libraries, model_tokens, now, turns

DAY = timedelta(days=1)


class UsageStore:
    """Counts what belongs to the person of its database, or to everybody."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def running(self) -> int:
        """Return how many answers are being written."""
        query = (
            select(func.count()).select_from(turns).join(conversations, conversations.c.id == turns.c.conversation_id)
        )
        with self._database.read() as connection:
            running = turns.c.status == "running", own_conversations(connection, of_few=True)
            return connection.execute(query.where(*running)).scalar_one()

    def stored_bytes(self) -> int:
        """Return how many bytes the files in the person's own libraries have."""
        with self._database.read() as connection:
            own = select(libraries.c.id).where(libraries.c.person_id == person_of(connection))
            query = select(func.coalesce(func.sum(documents.c.size_bytes), 0)).where(documents.c.library_id.in_(own))
            return int(connection.execute(query).scalar_one())

    def keep_tokens(self, tokens: int) -> None:
        """Keep how many tokens a request to a model took, for a day."""
        moment = now()
        row = {"at": moment, "tokens": tokens}
        with self._database.write(forced=False) as connection:
            connection.execute(delete(model_tokens).where(model_tokens.c.at <= moment - DAY))
            connection.execute(insert(model_tokens).values(row | {"person_id": person_of(connection)}))

    def tokens(self) -> int:
        """Return how many tokens models took within a day."""
        with self._database.read() as connection:
            query = select(func.coalesce(func.sum(model_tokens.c.tokens), 0)).where(*_of_a_day(connection, now()))
            return int(connection.execute(query).scalar_one())

    def seconds_until_below(self, limit: int) -> float:
        """Return how long it takes until less than ``limit`` tokens were taken within a day; 0 if that is so."""
        moment = now()
        with self._database.read() as connection:
            query = select(model_tokens.c.at, model_tokens.c.tokens).where(*_of_a_day(connection, moment))
            # The newest first: as soon as they come to the limit, that one has to be a day old.
            for at, tokens in connection.execute(query.order_by(model_tokens.c.at.desc(), model_tokens.c.id.desc())):
                limit -= tokens
                if limit <= 0:
                    return float((at + DAY - moment).total_seconds())
        return 0.0


def _of_a_day(connection: Connection, moment: datetime) -> Iterator[ColumnElement[bool]]:
    yield model_tokens.c.at > moment - DAY
    person = person_of(connection)
    if person is not None:
        yield model_tokens.c.person_id == person
