"""Copies of everybody's data that killed backups, restores and upgrades left behind are deleted, and that is told."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import migrate
from tests.cli.shell import Shell
from tests.testkit.samples import sample
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import PROJECT, ServerProcess
from tests.web.conftest import until

WORKING = """
import sys, time
from pathlib import Path
from rag_assistant.runtime.data_dir import working_folder
with working_folder(Path(sys.argv[1]), sys.argv[2]) as folder:
    (folder / "assistant.db").write_text("Everything.")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("command", "step"),
    sample(
        [
            ("backup", "rag_assistant.storage.database:Database.copy_to:after:1"),
            ("backup", "rag_assistant.storage.backup:_fill:after:1"),
            ("restore", "rag_assistant.storage.backup:_unpack:after:1"),
            ("restore", "rag_assistant.storage.backup:_put_in_place:before:1"),
            ("restore", "rag_assistant.storage.backup:move:before:1"),
        ]
    ),
)
def test_a_command_that_is_killed_leaves_no_copy_behind_for_long(
    shell: Shell, server_fork: ServerFork, tmp_path: Path, command: str, step: str
) -> None:
    (tmp_path / "a.txt").write_text("Geese hiss.")
    assert shell("documents", "add", str(tmp_path / "a.txt")).exit_code == 0
    archive, other = tmp_path / "backup.zip", tmp_path / "other"
    assert shell("backup", str(archive)).exit_code == 0
    if command == "restore":
        shell = Shell(shell.environment | {"DATA_DIR": str(other)})
    else:
        archive = tmp_path / "second.zip"
    data_dir = Path(shell.environment["DATA_DIR"])
    before = names_in(data_dir)
    environment = {**os.environ, **shell.environment, "KILL_AT": step}  # As if the power had failed at that step.
    server_fork.launch(environment, tmp_path / "log", command, str(archive)).wait(60)
    assert not (data_dir / "assistant.db" if command == "restore" else archive).exists()
    assert names_in(data_dir) > before
    assert shell(command, str(archive)).exit_code == 0
    assert "a.txt" in shell("documents", "list").stdout
    assert shell("doctor").exit_code == 0
    usual = {"assistant.db", "assistant.db-shm", "assistant.db-wal", "commands.lock", "installation", "server.lock"}
    assert names_in(data_dir) - usual == {"chroma", "uploads"} & names_in(data_dir)


def names_in(data_dir: Path) -> set[str]:
    return {path.name for path in data_dir.iterdir()} if data_dir.exists() else set()


@pytest.mark.parametrize("prefix", sample(["restore-", "backup-"]))
def test_the_folder_of_a_killed_process_is_deleted_and_that_of_a_living_one_stays(
    shell: Shell, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    shell("documents", "list")
    data_dir = Path(shell.environment["DATA_DIR"])
    arguments = [sys.executable, "-c", WORKING, str(data_dir), prefix]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert shell("doctor").exit_code == 0
        assert (folder / "assistant.db").exists()
        process.send_signal(signal.SIGKILL)
    assert folder.exists()
    shell("doctor")
    assert f"{folder} was deleted" in caplog.text
    assert not folder.exists()


def test_the_copy_of_a_killed_upgrade_is_deleted_and_that_of_a_running_one_stays(shell: Shell) -> None:
    shell("documents", "list")
    data_dir = Path(shell.environment["DATA_DIR"])
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left, live = (data_dir / f"assistant-schema-0037.db.{pid}.part" for pid in (ended.pid, os.getppid()))
    for copy in (left, live):
        copy.write_text("Everything.")
    shell("documents", "list")
    assert (left.exists(), live.exists()) == (False, True)


@pytest.mark.long
@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_what_an_upgrade_leaves_that_was_killed_in_the_middle_of_its_copy_is_deleted(
    shell: Shell, server_fork: ServerFork, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = Path(shell.environment["DATA_DIR"])
    (data_dir / "assistant.db").unlink()
    with monkeypatch.context() as before, closing(Database(sqlite_url(data_dir))) as database:
        before.setattr("rag_assistant.storage.migrate.SCHEMA_REVISION", "0038")
        migrate(database)
        with database.write() as connection:  # So large that its copy takes a while.
            connection.execute(text("CREATE TABLE large AS SELECT zeroblob(100000000) AS bytes"))
    environment: dict[str, Any] = {**shell.environment}
    server = ServerProcess(data_dir.parent, server_fork.launch, **environment)
    server.launch()
    until(lambda: list(data_dir.glob("*.part")), 60.0)
    server.kill()
    (left,) = data_dir.glob("assistant-schema-0038.db.*.part")
    assert not (data_dir / "assistant-schema-0038.db").exists()
    if command == "doctor":
        assert shell("doctor").exit_code == 0
    else:
        server.start()
        server.kill()
    assert not left.exists()
    (data_dir / "assistant-schema-0038.db").unlink()  # Complete.


def test_a_second_restore_deletes_what_the_first_left(shell: Shell, tmp_path: Path) -> None:
    shell("documents", "list")
    assert shell("backup", str(tmp_path / "backup.zip")).exit_code == 0
    elsewhere = Shell(shell.environment | {"DATA_DIR": str(tmp_path / "other")})
    (tmp_path / "other" / "restore-abcd1234" / "uploads").mkdir(parents=True)
    restored = elsewhere("restore", str(tmp_path / "backup.zip"))
    assert restored.exit_code == 0, restored.output
    assert not (tmp_path / "other" / "restore-abcd1234").exists()
