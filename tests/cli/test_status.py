"""What ``status`` tells: with and without a server, and before an upgrade."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from rag_assistant import __version__
from rag_assistant.runtime.data_dir import lock_data_dir
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import FIRST_REVISION, SCHEMA_REVISION
from rag_assistant.storage.usage import usage_of
from tests.cli.shell import Shell


def status(shell: Shell) -> dict[str, Any]:
    said = shell("status", "--json")
    assert said.exit_code == 0, said.output
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_it_tells_what_there_is_where_it_lies_and_how_large_it_is(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "geese.txt").write_text("Geese hiss.")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    shell("documents", "add", str(tmp_path / "geese.txt"), str(tmp_path / "broken.pdf"))
    shell("ask", "Why?")
    found = status(shell)
    sizes, disk = found.pop("bytes"), found.pop("disk")
    assert 0 < disk["free"] < disk["total"]
    assert found.pop("disk_is_low") == (disk["free"] < disk["total"] / 10)
    assert found.pop("embedder_serving")
    assert found == {
        "version": __version__,
        "schema": SCHEMA_REVISION,
        "upgrade_pending": False,
        "schema_problem": None,
        "settings_file": str(tmp_path / "settings.json"),
        "data_dir": str(tmp_path / "data"),
        "in_use": False,
        "model": {"base_url": shell.environment["OPENAI_BASE_URL"], "model": "stub-model"},
        "embedder": "builtin",
        "backup": {"state": "off", "newest": None, "age_seconds": None},
        "files": str(tmp_path / "data" / "uploads"),
        "conversations": 1,
        "conversations_in_trash": 0,
        "turns": 1,
        "documents": {"failed": 1, "ready": 1},
        "jobs": {"waiting": 0, "scheduled": 0},
    }
    assert sizes["original_files"] == len("Geese hiss.") + len(b"%PDF-1.4 nothing")
    assert sizes["database"] == (tmp_path / "data" / "assistant.db").stat().st_size
    assert sizes["vectors"] == 384 * 4
    assert sizes["full_text"] > 0
    assert sizes["trash"] == 0


def test_a_person_reads_one_line_for_each(shell: Shell, tmp_path: Path) -> None:
    with lock_data_dir(tmp_path / "data"):
        said = shell("status").stdout
    assert f"Version                   {__version__}\n" in said
    assert f"Data                      {tmp_path}/data\n" in said
    assert "Server                    running" in said
    assert f"Model                     stub-model at {shell.environment['OPENAI_BASE_URL']}\n" in said
    unconnected = shell.under(OPENAI_BASE_URL="", OPENAI_API_KEY="")("status").stdout
    assert "Model                     none in the settings or this environment; answers are quotes\n" in unconnected
    assert "Documents                 none\n" in said
    assert "  of which full text      0.0 MB\n" in said
    assert "  original files          0.0 MB\n" in said


@pytest.mark.parametrize(
    ("schema", "pending", "line"),
    [
        (FIRST_REVISION, True, f"{FIRST_REVISION}, upgraded at the next start"),
        ("0003", False, "The database has the schema 0003, from before version 1.0"),
        ("9999", False, "The database has the schema 9999, which this version"),
    ],
)
def test_another_schema_is_told_and_left_alone(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, pending: bool, line: str
) -> None:
    monkeypatch.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "8888")
    database = Database(sqlite_url(tmp_path / "data"))
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :schema"), {"schema": schema})
    database.close()
    found = status(shell)
    assert (found["schema"], found["upgrade_pending"]) == (schema, pending)
    assert "documents" not in found
    assert f"Schema                    {line}" in shell("status").stdout
    assert status(shell)["schema"] == schema


def test_both_databases_are_measured(database: Database) -> None:
    usage = usage_of(database)
    assert (usage["conversations"], usage["turns"], usage["documents"], usage["bytes"]["vectors"]) == (0, 0, {}, 0)
    assert usage["bytes"]["trash"] == 0
    assert usage["bytes"]["database"] > usage["bytes"]["full_text"] > 0
