"""What people take of the server at present."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, insert, select

from rag_assistant.storage.database import Store
from rag_assistant.storage.tables import conversations, documents, libraries, model_tokens, now, turns

DAY = timedelta(days=1)


class UsageStore(Store):
    """Counts what belongs to a person, or with ``None`` to everybody."""

    def running(self, person_id: int) -> int:
        """Return how many answers are being written."""
        joined = turns.join(conversations, conversations.c.id == turns.c.conversation_id)
        # With the plus, SQLite begins with what runs, which is less than a person has.
        running = turns.c.status == "running", conversations.c.person_id + 0 == person_id
        with self._database.read() as connection:
            return connection.execute(select(func.count()).select_from(joined).where(*running)).scalar_one()

    def stored_bytes(self, person_id: int) -> int:
        """Return how many bytes the files in the person's own libraries have."""
        own = select(libraries.c.id).where(libraries.c.person_id == person_id)
        query = select(func.coalesce(func.sum(documents.c.size_bytes), 0)).where(documents.c.library_id.in_(own))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def keep_tokens(self, tokens: int, person_id: int | None) -> None:
        """Keep how many tokens a request to a model took, for a day."""
        moment = now()
        row = {"at": moment, "tokens": tokens, "person_id": person_id}
        with self._database.write(forced=False) as connection:
            connection.execute(delete(model_tokens).where(model_tokens.c.at <= moment - DAY))
            connection.execute(insert(model_tokens).values(row))

    def tokens(self, person_id: int | None) -> int:
        """Return how many tokens models took within a day."""
        query = select(func.coalesce(func.sum(model_tokens.c.tokens), 0)).where(*_of_a_day(person_id, now()))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def seconds_until_below(self, limit: int, person_id: int | None) -> float:
        """Return how long it takes until less than ``limit`` tokens were taken within a day; 0 if that is so."""
        moment = now()
        query = select(model_tokens.c.at, model_tokens.c.tokens).where(*_of_a_day(person_id, moment))
        with self._database.read() as connection:
            # The newest first: as soon as they come to the limit, that one has to be a day old.
            for at, tokens in connection.execute(query.order_by(model_tokens.c.at.desc(), model_tokens.c.id.desc())):
                limit -= tokens
                if limit <= 0:
                    return float((at + DAY - moment).total_seconds())
        return 0.0


def _of_a_day(person_id: int | None, moment: datetime) -> list[ColumnElement[bool]]:
    own = [] if person_id is None else [model_tokens.c.person_id == person_id]
    return [model_tokens.c.at > moment - DAY, *own]
