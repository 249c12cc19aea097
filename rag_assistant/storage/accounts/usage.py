"""What people currently use of the server."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import asdict
from sqlalchemy import ColumnElement, Connection, delete, func, insert, not_, select, union_all, update

from rag_assistant.records import QUOTES, ModelCounts, ModelUse
from rag_assistant.records.errors import LimitReached
from rag_assistant.storage.database import Store, insert_row, lock
from rag_assistant.storage.processes import is_nobodys
from rag_assistant.storage.tables import (
    api_tokens,
    asked_questions,
    conversations,
    documents,
    libraries,
    model_counts,
    model_tokens,
    now,
    people,
    sessions,
    turns,
)

MINUTE, DAY, MONTH = timedelta(minutes=1), timedelta(days=1), timedelta(days=30)
RETRY_RUNNING_SECONDS = 5.0
Used = Literal["tokens", "cost"]


class UsageStore(Store):
    """Counts a person's usage, or with ``None`` everybody's."""

    def take_question(self, person_id: int, process: str, at_once: int | None, per_minute: int | None) -> int:
        """Record that a process answers a question; return its number.

        Raises LimitReached if the person has too many answers running, or asked too many questions within a minute.
        """
        moment = now()
        with self._database.write(forced=False) as connection:
            lock(connection, f"questions of {person_id}")
            own = asked_questions.c.person_id == person_id
            ended = not_(_within(asked_questions.c.at, MINUTE, moment)) & is_nobodys(asked_questions.c.owner)
            connection.execute(delete(asked_questions).where(own, ended))
            if at_once is not None and _running(connection, person_id) >= at_once:
                raise LimitReached(f"{at_once} of your answers are already being written", RETRY_RUNNING_SECONDS)
            newest = _asked(connection, person_id, moment)
            if per_minute is not None and len(newest) >= per_minute:
                wait = (newest[per_minute - 1] + MINUTE - moment).total_seconds()
                raise LimitReached(f"You asked {per_minute} questions within a minute", wait)
            return insert_row(connection, asked_questions, {"person_id": person_id, "at": moment, "owner": process})

    def release_questions(self, numbers: Collection[int]) -> None:
        """Mark questions as no longer being answered."""
        these = asked_questions.c.id.in_(numbers)
        self._commit(update(asked_questions).where(these).values(owner=None), forced=False)

    def questions(self, person_id: int) -> tuple[int, int]:
        """Return how many questions were asked within the last minute, and how many are being answered."""
        with self._database.read() as connection:
            return len(_asked(connection, person_id, now())), _running(connection, person_id)

    def stored_bytes(self, person_id: int) -> int:
        """Return the total size in bytes of the files in the person's own libraries."""
        with self._database.read() as connection:
            return bytes_of(connection, person_id)

    def by_person(self, days: int, prices: Mapping[str, Sequence[float]]) -> list[ModelUse]:
        """Return what each person's questions of the last days used, by model; the largest users first."""
        model = func.coalesce(turns.c.model, "")
        prompt, completion = (
            func.coalesce(func.sum(turns.c.usage[name].as_integer()), 0)
            for name in ("prompt_tokens", "completion_tokens")
        )
        query = (
            select(conversations.c.person_id, model, func.count(), prompt, completion)
            .join_from(turns, conversations)
            .where(turns.c.created_at >= now() - days * DAY)
            .group_by(conversations.c.person_id, model)
            .order_by((prompt + completion).desc(), func.count().desc(), conversations.c.person_id, model)
        )
        stored = select(libraries.c.person_id, func.sum(documents.c.size_bytes)).join_from(
            documents, libraries, documents.c.library_id == libraries.c.id
        )
        used = union_all(*(select(one.c.person_id, one.c.used_at) for one in (sessions, api_tokens))).subquery()
        seen = select(used.c.person_id, func.max(used.c.used_at)).group_by(used.c.person_id)
        with self._database.read() as connection:
            names, sizes, seen_at = (
                {row[0]: row[1] for row in connection.execute(one)}
                for one in (select(people.c.id, people.c.name), stored.group_by(libraries.c.person_id), seen)
            )
            rows = connection.execute(query).all()
        return [
            ModelUse(
                *(names.get(person), model or QUOTES, questions, sent, written),
                None if (cost := cost_of(sent, written, prices.get(model))) is None else round(cost, 6),
                *(int(sizes.get(person, 0)), seen_at.get(person)),
            )
            for person, model, questions, sent, written in rows
        ]

    def keep_use(self, tokens: int, cost: float, person_id: int | None) -> None:
        """Add the tokens of models and their cost to those of this hour: of the person, and of all together."""
        moment = now()
        hour = moment.replace(minute=0, second=0, microsecond=0)
        row = model_tokens.c
        more = {"tokens": row.tokens + tokens, "cost": row.cost + cost}
        with self._database.write(forced=False) as connection:
            lock(connection, "use of models")
            for person in {person_id, None}:
                this_hour = update(model_tokens).where(row.person_id == person, row.at == hour)
                if not connection.execute(this_hour.values(more)).rowcount:
                    connection.execute(delete(model_tokens).where(not_(_within(row.at, MONTH, moment))))
                    values = {"person_id": person, "at": hour, "tokens": tokens, "cost": cost}
                    connection.execute(insert(model_tokens).values(values))

    def used(self, what: Used, time: timedelta, person_id: int | None) -> float:
        """Return how much was used within the time."""
        query = select(func.coalesce(func.sum(model_tokens.c[what]), 0)).where(*_used(time, person_id, now()))
        used: float = self._values(query)[0]
        return used

    def seconds_until_below(self, limit: float, what: Used, time: timedelta, person_id: int | None) -> float:
        """Return how many seconds until usage within the time falls below ``limit``; 0 if it is below already."""
        moment, at = now(), model_tokens.c.at
        query = select(at, model_tokens.c[what]).where(*_used(time, person_id, moment)).order_by(at.desc())
        with self._database.read() as connection:
            # Newest first: the hour that reaches the limit has to become that old.
            for hour, used in connection.execute(query):
                limit -= used
                if limit <= 0:
                    return float((hour + time - moment).total_seconds())
        return 0.0


def cost_of(prompt_tokens: int, completion_tokens: int, prices: Sequence[float] | None) -> float | None:
    """Return what tokens cost at the prices of a million, ``None`` without prices."""
    return None if prices is None else (prompt_tokens * prices[0] + completion_tokens * prices[1]) / 1_000_000


def bytes_of(connection: Connection, person_id: int | None) -> int:
    """Return the total size in bytes of the files in a person's libraries."""
    own = select(libraries.c.id).where(libraries.c.person_id == person_id)
    query = select(func.coalesce(func.sum(documents.c.size_bytes), 0)).where(documents.c.library_id.in_(own))
    return int(connection.execute(query).scalar_one())


def _running(connection: Connection, person_id: int) -> int:
    mine = asked_questions.c.person_id == person_id, not_(is_nobodys(asked_questions.c.owner))
    return connection.execute(select(func.count()).select_from(asked_questions).where(*mine)).scalar_one()


def _asked(connection: Connection, person_id: int, moment: datetime) -> list[datetime]:
    """Return when a person asked questions within the last minute, newest first."""
    at = asked_questions.c.at
    mine = asked_questions.c.person_id == person_id, _within(at, MINUTE, moment)
    return list(connection.execute(select(at).where(*mine).order_by(at.desc())).scalars())


def _used(time: timedelta, person_id: int | None, moment: datetime) -> tuple[ColumnElement[bool], ...]:
    return model_tokens.c.person_id == person_id, _within(model_tokens.c.at, time, moment)


def _within(at: ColumnElement[datetime], time: timedelta, moment: datetime) -> ColumnElement[bool]:
    """Return the condition for entries within the period, not in the future (made while the clock was wrong)."""
    return at.between(moment - time, moment + time)


class ModelCountsStore(Store):
    """Stores token figures per endpoint and model."""

    def get(self, base_url: str, model: str) -> ModelCounts | None:
        """Return a model's figures, ``None`` if there are none."""
        return next(iter(self._records(select(model_counts).where(*_of(base_url, model)), ModelCounts)), None)

    def keep(self, base_url: str, model: str, counts: ModelCounts) -> None:
        with self._database.write(forced=False) as connection:
            connection.execute(delete(model_counts).where(*_of(base_url, model)))
            connection.execute(insert(model_counts).values(base_url=base_url, model=model, **asdict(counts)))


def _of(base_url: str, model: str) -> list[ColumnElement[bool]]:
    return [model_counts.c.base_url == base_url, model_counts.c.model == model]
