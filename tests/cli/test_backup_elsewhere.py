"""A backup of any database and any store of files goes into any other, and is the same there."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from rag_assistant.storage import copying
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.full_text import CHUNK_WORDS, TURN_WORDS
from rag_assistant.storage.tables import metadata, processes
from rag_assistant.web import create_app
from tests.cli.shell import Shell
from tests.testkit.s3_server import BUCKET, FaultyProxy, S3Server, refusal
from tests.testkit.stub_model import Reply, StubModel

ANSWER = "They generously hiss; the keeper's ducks were running in März 2026."


@pytest.fixture
def filled(shell: Shell, stub: StubModel, tmp_path: Path) -> Shell:
    """An installation with documents, a deleted one, and conversations, one of which failed."""
    for name, said in (
        ("geese", "Geese hiss at 3.5 foxes.\nGänse zischen. 鹅会嘶叫"),
        ("swans", "Swans sing."),
        ("owl", "Owls."),
    ):
        (tmp_path / f"{name}.txt").write_text(said)
        shell("documents", "add", str(tmp_path / f"{name}.txt"), "--tag", name)
    shell("documents", "delete", "3", "--yes")
    for _ in range(2):
        stub.replies.append(Reply(ANSWER))
        shell("ask", "What do geese do?")
    stub.default = Reply(status=500)
    shell("ask", "And now?")
    stub.default = Reply(ANSWER)
    return shell


@pytest.fixture
def backup(shell: Shell, tmp_path: Path) -> str:
    """A backup of two documents."""
    for name in ("geese", "swans"):
        (tmp_path / f"{name}.txt").write_text(f"Of {name}.")
    ran(shell, "documents", "add", *map(str, sorted(tmp_path.glob("*.txt"))))
    ran(shell, "backup", str(tmp_path / "one.zip"))
    return str(tmp_path / "one.zip")


@pytest.fixture
def cluster(shell: Shell, postgres_database: str, s3: S3Server, s3_proxy: FaultyProxy, tmp_path: Path) -> Shell:
    """Another installation, on PostgreSQL and S3, with nothing in it."""
    return shell.under(
        DATA_DIR=str(tmp_path / "cluster" / "data"),
        SETTINGS_FILE=str(tmp_path / "cluster" / "settings.json"),
        DATABASE_URL=postgres_database,
        FILES_URL=f"s3://{BUCKET}/{tmp_path.name}",
        S3_ENDPOINT_URL=s3_proxy.url,
    )


def everything(url: str) -> dict[str, list[list[str]]]:
    """Return all rows of a database as they are kept, but for the processes and where files lie."""
    database, found = Database(url), {}
    with database.read() as connection:
        for table in metadata.sorted_tables:
            if table is not processes and table.name != "deleted_files":
                kept = [copying._as_stored(column, connection) for column in table.c if column.name != "owner"]
                rows = connection.execute(select(*kept)).all()
                found[table.name] = sorted([_shown(value) for value in row] for row in rows)
    database.close()
    return found


def _shown(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else repr(value)


def words_of(url: str) -> list[Any]:
    database = Database(url)
    with database.read() as connection:
        found = [
            sorted(connection.execute(select(key, index.text(connection)).select_from(words)).all())
            for index in (CHUNK_WORDS, TURN_WORDS)
            for words, key in [index.columns(connection)]
        ]
    database.close()
    return [[tuple(row) for row in rows] for rows in found]


def ran(shell: Shell, *words: str) -> str:
    result = shell(*words)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.long
def test_what_goes_from_sqlite_to_postgresql_and_s3_and_back_is_the_same(
    filled: Shell, cluster: Shell, postgres_database: str, s3: S3Server, tmp_path: Path
) -> None:
    before = everything(sqlite_url(tmp_path / "data"))
    ran(filled, "backup", str(tmp_path / "one.zip"))
    assert f"and PostgreSQL and s3://{BUCKET}/{tmp_path.name}" in ran(cluster, "restore", str(tmp_path / "one.zip"))
    assert everything(postgres_database) == before
    assert ran(cluster, "doctor").endswith("Everything is consistent.\n")
    assert len(s3.names(tmp_path.name)) == 2
    assert not (tmp_path / "cluster" / "data" / "uploads").exists()

    app = create_app(cluster.environment)
    client = app.test_client()
    with client.get("/api/documents/1/file", buffered=True) as file:
        assert file.data.startswith(b"Geese hiss at 3.5")
    assert json.loads(client.get("/api/search?q=foxes").data)["passages"]
    found = json.loads(client.get("/api/conversations?q=generously").data)["conversations"]
    assert len(found) == 2
    app.extensions["assistant"].close()
    (tmp_path / "more.txt").write_text("Ducks quack.")
    assert "new, document 4" in ran(cluster, "documents", "add", str(tmp_path / "more.txt")), "no id is given twice"
    ran(cluster, "documents", "delete", "4", "--yes")

    ran(cluster, "backup", str(tmp_path / "two.zip"))
    back = filled.under(
        DATA_DIR=str(tmp_path / "back" / "data"), SETTINGS_FILE=str(tmp_path / "back" / "settings.json")
    )
    ran(back, "restore", str(tmp_path / "two.zip"))
    after = everything(sqlite_url(tmp_path / "back" / "data"))
    assert after.pop("embedders") != before.pop("embedders"), "it has counted what came and went"
    assert after == before
    assert words_of(sqlite_url(tmp_path / "back" / "data")) == words_of(sqlite_url(tmp_path / "data"))
    assert ran(back, "doctor").endswith("Everything is consistent.\n")
    assert "new, document 5" in ran(back, "documents", "add", str(tmp_path / "more.txt")), "no id is given twice"


@pytest.mark.long
def test_a_restore_that_an_outage_broke_off_can_be_done_again_and_one_that_is_done_cannot(
    backup: str, cluster: Shell, postgres_database: str, s3_proxy: FaultyProxy
) -> None:
    seen = []

    def second_file(request: Any) -> bool:
        seen.append(request.command)
        return seen.count("PUT") == 2 and request.command == "PUT" and refusal(403, "AccessDenied")(request)

    s3_proxy.fault = second_file
    broken = cluster("restore", backup)
    assert broken.exit_code == 1
    assert "rejected the keys" in broken.stderr
    database = Database(postgres_database)
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM documents")).scalar() == 0
    database.close()
    ran(cluster, "restore", backup)
    assert ran(cluster, "doctor").endswith("Everything is consistent.\n")
    again = cluster("restore", backup)
    assert again.exit_code == 1
    assert "The database (database_url) holds data already. Name an empty one." in again.stderr


@pytest.mark.long
def test_a_backup_without_the_files_is_no_backup(cluster: Shell, s3_proxy: FaultyProxy, tmp_path: Path) -> None:
    (tmp_path / "geese.txt").write_text("Of geese.")
    ran(cluster, "documents", "add", str(tmp_path / "geese.txt"))
    s3_proxy.fault = refusal(403, "AccessDenied")
    broken = cluster("backup", str(tmp_path / "two.zip"))
    assert broken.exit_code == 1
    assert "rejected the keys" in broken.stderr
    assert "No backup was written." in broken.stderr
    assert not list(tmp_path.glob("two.zip*"))
