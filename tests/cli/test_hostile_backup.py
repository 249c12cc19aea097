"""A backup that somebody else made, to harm whoever restores it."""

import contextlib
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.web import create_app
from tests.cli.shell import Shell
from tests.testkit.samples import sample

Change = Callable[[dict[str, bytes]], None]


def rebuilt(backup: Path, folder: Path, change: Change) -> None:
    """Write a backup anew with other files in it."""
    with zipfile.ZipFile(backup) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(backup, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def told(**values: Any) -> Change:
    def change(files: dict[str, bytes]) -> None:
        files["backup.json"] = json.dumps(json.loads(files["backup.json"]) | values).encode()

    return change


def database(*statements: str) -> Change:
    """Return what runs statements on the database in a backup."""

    def change(files: dict[str, bytes]) -> None:
        with tempfile.NamedTemporaryFile(suffix=".db") as file:
            file.write(files["assistant.db"])
            file.flush()
            with contextlib.closing(sqlite3.connect(file.name, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                for statement in statements:
                    connection.execute(statement)
            files["assistant.db"] = Path(file.name).read_bytes()

    return change


def instead(name: str, content: bytes) -> Change:
    return lambda files: files.update({name: content})


@pytest.fixture
def backup(shell: Shell, tmp_path: Path) -> Path:
    (tmp_path / "geese.txt").write_text("Geese hiss.")
    shell("documents", "add", str(tmp_path / "geese.txt"))
    assert shell("backup", str(tmp_path / "one.zip")).exit_code == 0
    return tmp_path / "one.zip"


HOSTILE: dict[str, Change] = {
    "a list": instead("backup.json", b"[]"),
    "a deep one": instead("backup.json", b"[" * 100_000),
    "numbers": told(schema=7, version=[]),
    "no revision": told(schema="x"),
    "no database": instead("assistant.db", b"SQLite format 3\0" + b"\xff" * 5000),
    "nothing": instead("assistant.db", b""),
    "tables of another": database("DROP TABLE turns", "CREATE TABLE turns (id INTEGER)"),
    "not the revision": database("DELETE FROM alembic_version"),
    "a trigger": database("CREATE TRIGGER t AFTER INSERT ON people BEGIN DELETE FROM people; END"),
    "a view": database("ALTER TABLE people RENAME TO others", "CREATE VIEW people AS SELECT * FROM others"),
    "a path": instead("uploads/../../escaped", b"x"),
    "a backslash": instead("uploads\\..\\escaped", b"x"),
}


# One of each kind: what it says of itself, no database, a hostile one, and a name that leads elsewhere.
SAMPLE = ("a deep one", "no database", "a trigger", "a path")


@pytest.mark.parametrize(
    "name", sample([name if name in SAMPLE else pytest.param(name, marks=pytest.mark.long) for name in HOSTILE])
)
def test_a_backup_that_is_none_of_ours_restores_nothing(shell: Shell, backup: Path, tmp_path: Path, name: str) -> None:
    rebuilt(backup, tmp_path, HOSTILE[name])
    there = shell.under(DATA_DIR=str(tmp_path / "new"), SETTINGS_FILE=str(tmp_path / "new.json"))
    refused = there("restore", str(backup))
    assert refused.exit_code == 1
    assert isinstance(refused.exception, SystemExit), "no traceback"
    assert "is not a complete backup. Nothing was restored." in refused.stderr
    assert not (tmp_path / "new" / "assistant.db").exists()


def test_a_document_of_a_hostile_backup_is_no_other_file_of_the_machine(
    shell: Shell, backup: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("sk-canary")
    rebuilt(backup, tmp_path, database(f"UPDATE documents SET file = '../../../{tmp_path.name}/secret'"))
    there = shell.under(DATA_DIR=str(tmp_path / "new"), SETTINGS_FILE=str(tmp_path / "new.json"))
    there("restore", str(backup))
    app = create_app(there.environment)
    with app.test_client().get("/api/documents/1/file", buffered=True) as file:
        assert file.status_code == 410, file.data
    assert app.test_client().delete("/api/documents/1").status_code == 204
    app.extensions["assistant"].close()
    assert (tmp_path / "secret").exists()
