"""The schema: from empty to the newest, and the same as the tables say."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from rag_assistant.records.errors import StorageFailed
from rag_assistant.settings.package_files import MIGRATIONS
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import SCHEMA_REVISION, UPGRADED_BY, current_revision, migrate
from rag_assistant.storage.tables import conversations, documents, grid_cells, grids, people, summaries
from tests.conftest import new_database

both_engines = pytest.mark.parametrize("empty", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database in which nothing is."""
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            url = sqlite_url(tmp_path)
        else:
            url = stack.enter_context(new_database(request.getfixturevalue("postgres_server"), tmp_path))
        opened = Database(url)
        yield opened
        opened.close()


@both_engines
def test_an_empty_database_gets_the_schema_of_the_tables(empty: Database) -> None:
    assert migrate(empty) is True
    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_ours})
        assert compare_metadata(context, people.metadata) == []
        if empty.is_sqlite:
            made = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE % WHERE %'")
            conditions = {name: sql.partition(" WHERE ")[2].removesuffix(" = 1") for name, sql in made}
    if empty.is_sqlite:
        indexes = {index for table in people.metadata.tables.values() for index in table.indexes}
        assert conditions == {index.name: index.info["where"] for index in indexes if index.info}


@pytest.mark.parametrize("empty", ["postgresql"], indirect=True)
def test_of_servers_that_start_together_one_makes_the_schema_and_the_others_wait(empty: Database) -> None:
    """On SQLite the lock of the data folder keeps the second one out."""
    databases = [Database(empty.url.render_as_string(hide_password=False)) for _ in range(3)]
    with ThreadPoolExecutor() as threads:
        assert sorted(threads.map(migrate, databases)) == [False, False, True]
    for database in databases:
        database.close()


def is_ours(_object: object, name: str, kind: str, _reflected: bool, _other: object) -> bool:
    return not (kind == "table" and name.startswith(("chunk_words", "turn_words")))


def test_a_second_migration_has_nothing_to_do(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    assert current_revision(database) is None
    assert migrate(database) is True
    assert current_revision(database) == SCHEMA_REVISION
    assert migrate(database) is False
    database.close()


def test_each_migration_follows_the_one_before() -> None:
    names = [path.name[:4] for path in sorted((MIGRATIONS / "versions").glob("*.py"))]
    texts = [path.read_text() for path in sorted((MIGRATIONS / "versions").glob("*.py"))]
    assert len(set(names)) == len(names)
    assert all(f'revision = "{name}"' in text for name, text in zip(names, texts, strict=True))
    assert all(f'down_revision = "{name}"' in text for name, text in zip(names, texts[1:], strict=False))


def test_the_known_revision_is_the_newest_file() -> None:
    assert max(path.name for path in (MIGRATIONS / "versions").glob("*.py")).startswith(SCHEMA_REVISION)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    migrate(database)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageFailed, match="written by a newer one"):
        migrate(database)
    assert current_revision(database) == "9999"
    database.close()


def test_a_database_from_before_version_1_is_told_which_commit_upgrades_it_and_left_alone(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    migrate(database)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0027'"))
    with pytest.raises(StorageFailed, match=f"schema 0027, .* at commit {UPGRADED_BY}: that upgrades the database"):
        migrate(database)
    assert (current_revision(database), database.copies) == ("0027", [])
    database.close()


def test_an_upgrade_learns_earlier_starts_and_drops_summaries_that_were_undone(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "0039")
        migrate(empty)
    moment = "2026-01-01 00:00:00"
    rows: dict[str, list[dict[str, Any]]] = {
        "conversations": [
            {"id": n, "title": "-", "created_at": moment, "updated_at": moment, "overrides": "{}", "turns": 9}
            | {"visible_turns": 9, "visible_messages": 18, "summary_id": summary}
            for n, summary in ((1, 3), (2, None), (3, None))
        ],
        "summaries": [
            {"id": n, "conversation_id": 1, "first_turn": 1, "last_turn": n, "covered": "[]", "text": f"{n}"}
            | {"written_by": "extract", "created_at": moment}
            for n in (1, 2, 3)
        ],
        "history_changes": [
            {"id": n, "conversation_id": of, "kind": "clear", "created_at": moment, "before": json.dumps(before)}
            for n, of, before in (
                (1, 1, {"context_start": 1, "summary_id": None}),
                (2, 1, {"context_start": 6, "summary_id": 1}),
                (3, 1, {"context_start": 4, "summary_id": 1}),
                (4, 2, {"context_start": 4, "summary_id": None}),
            )
        ],
    }
    with empty.write() as connection:
        for table, values in rows.items():
            names = ", ".join(values[0])
            places = ", ".join(f":{name}" for name in values[0])
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({places})"), values)
    migrate(empty)
    with empty.read() as connection:
        starts = connection.execute(select(conversations.c.id, conversations.c.earlier_starts)).all()
        left = connection.execute(select(summaries.c.id).order_by(summaries.c.id)).scalars().all()
    assert dict(map(tuple, starts)) == {1: [1, 4, 6], 2: [4], 3: []}
    assert left == [1, 3]


@pytest.mark.long
def test_an_upgrade_knows_the_guide_and_leaves_a_persons_files(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "0043")
        migrate(empty)
    rows = [
        {"id": n, "name": name, "origin": origin}
        for n, name, origin in (
            (1, "1-first-steps.md", None), (2, "geese.txt", None), (3, "7-tools.md", "/notes/7-tools.md"),
            (9, "2-history-window.md", None),
        )
    ]  # fmt: skip
    insert_documents(empty, rows)
    migrate(empty)
    with empty.read() as connection:
        origins = connection.execute(text("SELECT origin FROM documents ORDER BY id")).scalars().all()
    assert origins == ["guide:1-first-steps.md", None, "/notes/7-tools.md", None]


def insert_documents(database: Database, rows: list[dict[str, Any]]) -> None:
    with database.write() as connection:
        for row in rows:
            connection.execute(
                text(
                    "INSERT INTO documents (id, name, origin, name_key, media_type, size_bytes, content_key, owner, "
                    "file, state, chunks, embedded, created_at) VALUES (:id, :name, :origin, :name, 'text/plain', 1, "
                    "CAST(:id AS VARCHAR), '-', '-', 'ready', 0, 0, '2026-01-01 23:59:59+00:00')"
                ),
                row,
            )


def test_an_upgrade_dates_each_document_by_the_day_it_was_added(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "0045")
        migrate(empty)
    insert_documents(empty, [{"id": 1, "name": "geese.txt", "origin": "/notes/geese.txt"}])
    migrate(empty)
    with empty.read() as connection:
        (row,) = connection.execute(select(documents)).mappings().all()
    assert (row["name"], row["origin"], row["state"]) == ("geese.txt", "/notes/geese.txt", "ready")
    assert (row["date"], row["date_from"], row["dates"]) == ("2026-01-01", "added", {"added": "2026-01-01"})


@both_engines
def test_an_upgrade_merges_why_a_cell_is_unverified(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "0053")
        migrate(empty)
    insert_documents(empty, [{"id": 1, "name": "lease.txt", "origin": "-"}])
    doubts = ["hedged", "judged", "other_values", None]
    with empty.write() as connection:
        connection.execute(insert(grids).values(id=1, name="Leases", columns=[], created_at=datetime.now(UTC)))
        results = [{"outcome": "value", "value": "yes", "doubt": one} for one in doubts]
        rows = [{"column_id": n, "result": one} for n, one in enumerate([*results, None], 1)]
        common = {"grid_id": 1, "document_id": 1, "state": "done"}
        connection.execute(insert(grid_cells), [common | row for row in rows])
    migrate(empty)
    with empty.read() as connection:
        stored = connection.execute(select(grid_cells.c.result).order_by(grid_cells.c.column_id)).scalars().all()
    assert [one and one["doubt"] for one in stored] == ["unverified", "unverified", "other_values", None, None]
    assert {one["value"] for one in stored if one} == {"yes"}


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database from before the newest migration, which does nothing."""
    database = Database(sqlite_url(tmp_path))
    migrate(database)
    folder = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    newest = f'revision = "8888"\ndown_revision = "{SCHEMA_REVISION}"\n\ndef upgrade(): pass\n'
    (folder / "versions" / "8888_newest.py").write_text(newest)
    monkeypatch.setattr("rag_assistant.storage.migrate.MIGRATIONS", folder)
    monkeypatch.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "8888")
    yield database
    database.close()


def test_an_upgrade_that_breaks_off_in_the_middle_changed_nothing_and_is_done_again(
    older: Database, tmp_path: Path
) -> None:
    newest = tmp_path / "migrations" / "versions" / "8888_newest.py"
    whole = newest.read_text().replace(
        "pass",
        """
    from alembic import op
    op.execute("CREATE TABLE half (id INTEGER)")
    op.execute("CREATE INDEX of_half ON half (id)")
    """,
    )
    newest.write_text(whole.replace("ON half", "ON nothing"))
    with pytest.raises(DBAPIError):
        migrate(older)
    assert current_revision(older) == SCHEMA_REVISION
    newest.write_text(whole)
    assert migrate(older) is False
    assert current_revision(older) == "8888"


def test_an_upgrade_leaves_a_copy_from_before_and_the_way_back_is_to_put_it_in_place(older: Database) -> None:
    copy = older.file.with_name(f"assistant-schema-{SCHEMA_REVISION}.db")
    with older.write() as connection:
        connection.execute(text("CREATE TABLE of_before (id INTEGER)"))
    assert migrate(older) is False
    with older.write() as connection:
        connection.execute(text("DROP TABLE of_before"))
    older.close()
    copy.replace(older.file)
    back = Database(sqlite_url(older.file.parent))
    assert current_revision(back) == SCHEMA_REVISION
    with back.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM of_before")).scalar() == 0
    assert migrate(back) is False
    assert back.copies == [copy]
    back.close()


@pytest.mark.long
def test_only_the_newest_copies_are_kept_and_what_is_erased_is_in_none(older: Database) -> None:
    for revision in ("0001", "0002", "0003"):
        older.file.with_name(f"assistant-schema-{revision}.db").touch()
    migrate(older)
    assert [copy.name[17:21] for copy in older.copies] == ["0003", SCHEMA_REVISION]
    older.forget_deleted()
    assert older.copies == []


@pytest.mark.long
def test_without_room_for_the_copy_nothing_is_changed(older: Database) -> None:
    older.file.with_name(f"assistant-schema-{SCHEMA_REVISION}.db").mkdir()
    with pytest.raises(StorageFailed, match=r"copied to .*/assistant-schema-.*.db before .* Nothing was changed"):
        migrate(older)
    assert current_revision(older) == SCHEMA_REVISION
