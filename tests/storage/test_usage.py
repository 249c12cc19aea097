"""What people used: added up by the hour, and found by an index however much there is."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select

from rag_assistant.storage.accounts import usage as module
from rag_assistant.storage.accounts.usage import DAY, MONTH, UsageStore
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import model_tokens, turns
from tests.testkit.statements import listening

NOON = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)


@contextmanager
def explained(database: Database) -> Iterator[list[str]]:
    """Give how the database carries out each query inside, at the end."""
    queries: list[tuple[str, Any]] = []
    plans: list[str] = []
    with listening(Engine, "before_cursor_execute", lambda *event: queries.append((event[2], event[3]))):
        yield plans
    how = "EXPLAIN QUERY PLAN" if database.is_sqlite else "EXPLAIN"
    with database.engine.connect() as connection:
        for query, parameters in queries:
            if query.startswith("SELECT"):
                plans.append(str(connection.exec_driver_sql(f"{how} {query}", parameters).all()))


def analyze(database: Database) -> None:
    with database.write() as connection:
        connection.exec_driver_sql("ANALYZE")


@pytest.mark.long
def test_a_month_of_everybody_is_at_most_one_row_for_each_hour(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = UsageStore(database)
    for hour in range(0, 24 * 40, 11):
        monkeypatch.setattr(module, "now", lambda hour=hour: NOON + timedelta(hours=hour))
        for person in range(1, 4):
            store.keep_use(10, 0.25, person)
            store.keep_use(10, 0.25, person)
    with database.read() as connection:
        of_all = select(model_tokens.c.at).where(model_tokens.c.person_id.is_(None))
        hours = connection.execute(of_all).scalars().all()
    assert len(hours) == len(set(hours)) == 24 * 30 // 11 + 1
    assert store.used("tokens", DAY, None) == 3 * 20 * 3
    assert store.used("cost", MONTH, 1) == 0.5 * (24 * 30 // 11 + 1)
    assert store.used("cost", MONTH, 4) == 0


def test_what_a_person_used_is_found_by_an_index(database: Database) -> None:
    store = UsageStore(database)
    moments = [datetime.now(UTC) - timedelta(hours=hour) for hour in range(240)]
    rows = [{"person_id": n, "at": at, "tokens": 1, "cost": 1} for n in range(50) for at in moments]
    with database.write() as connection:
        connection.execute(insert(model_tokens), rows)
    analyze(database)
    with explained(database) as plans:
        store.used("cost", MONTH, 7)
        store.used("cost", DAY, None)
        store.seconds_until_below(1, "cost", MONTH, 7)
    assert len(plans) == 3
    assert all("ix_model_tokens_person" in plan for plan in plans), plans


def test_the_turns_of_the_last_days_are_found_by_their_time(database: Database) -> None:
    ConversationManager(database).create("Geese")
    moment = datetime.now(UTC)
    old, new = moment - timedelta(days=400), moment - timedelta(days=2)
    turn = {"conversation_id": 1, "status": "completed", "visible": True, "owner": "x", "request": {}, "notes": []}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    rows = [turn | {"number": n, "created_at": old, "model": "m", "usage": usage} for n in range(5000)]
    rows += [turn | {"number": 5000 + n, "created_at": new, "model": "m", "usage": usage} for n in range(3)]
    with database.write() as connection:
        connection.execute(insert(turns), rows)
    analyze(database)
    with explained(database) as plans:
        (row,) = UsageStore(database).by_person(30, {"m": (10_000, 100_000)})
    assert (row.questions, row.prompt_tokens, row.completion_tokens, row.cost) == (3, 300, 30, 6.0)
    (plan,) = [plan for plan in plans if "turns" in plan]
    assert "ix_turns_created_at" in plan
