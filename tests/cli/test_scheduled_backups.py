"""Backups that the server makes by itself, and the rehearsal of a restore."""

import logging
import os
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import insert

from rag_assistant.records.errors import FileDamaged
from rag_assistant.services import Services, open_services
from rag_assistant.storage.tables import processes
from tests.cli.shell import Shell
from tests.testkit.s3_server import S3Server

HOUR_SECONDS = 3600


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


@pytest.fixture
def scheduled(shell: Shell, folder: Path) -> Shell:
    return shell.under(BACKUP_FOLDER=str(folder), BACKUP_EVERY_HOURS="24", BACKUPS_KEPT="2")


@pytest.fixture
def services(scheduled: Shell, tmp_path: Path) -> Iterator[Services]:
    (tmp_path / "geese.txt").write_text("Geese hiss.")
    scheduled("documents", "add", str(tmp_path / "geese.txt"))
    with closing(open_services(scheduled.environment)) as services:
        services.prepare()
        yield services


def age(path: Path, hours: float) -> None:
    """Let a file be older than it is."""
    moment = path.stat().st_mtime - hours * HOUR_SECONDS
    os.utime(path, (moment, moment))


def test_a_backup_is_written_once_it_is_due_and_the_newest_stay(services: Services, folder: Path) -> None:
    for day in ("01", "02", "03"):
        (folder / f"assistant-202601{day}-000000.zip").write_bytes(b"old")
        age(folder / f"assistant-202601{day}-000000.zip", 25)
    (folder / "assistant-of-mine.zip").write_bytes(b"mine")
    services.backups.run_if_due()
    newest = Path(services.backups.status().newest or "")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["assistant-20260103-000000.zip", newest.name, "assistant-of-mine.zip"]
    )
    assert zipfile.is_zipfile(newest)
    services.backups.run_if_due()
    assert services.backups.status().newest == str(newest)
    assert services.backups.status().state == "ready"
    age(newest, 49)
    assert services.backups.status().state == "late"


def test_only_one_of_several_processes_makes_it(services: Services, folder: Path) -> None:
    services.membership.enter("server")
    assert services.membership.leases.is_first_worker
    services.upkeep.look()
    assert len(list(folder.iterdir())) == 1
    earlier = {"id": "0", "installation": "another", "kind": "worker", "beats": 0, "settings": {}}
    with services.database.write() as connection:
        connection.execute(insert(processes).values(earlier))
    assert not services.membership.leases.is_first_worker
    Path(services.backups.status().newest or "").unlink()
    services.upkeep.look()
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_of_servers_on_one_postgresql_one_makes_it_and_another_once_that_one_is_gone(
    postgres_database: str, tmp_path: Path, folder: Path
) -> None:
    shared = {"DATABASE_URL": postgres_database, "BACKUP_FOLDER": str(folder), "SETTINGS_FILE": str(tmp_path / "none")}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(closing(open_services(shared | {"DATA_DIR": str(tmp_path / name)}))) for name in "abc"
        ]
        for server in servers:
            server.membership.enter("server")
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda server: server.upkeep.look(), servers))
        first = [server for server in servers if server.membership.leases.is_first_worker]
        assert (len(first), len(list(folder.iterdir()))) == (1, 1)
        assert {server.backups.last_status.state for server in servers} <= {"ready", "late"}
        (backup,) = folder.iterdir()
        yesterdays = backup.rename(folder / "assistant-20260101-000000.zip")  # Names are unique within a second only.
        age(yesterdays, 25)
        others = [server for server in servers if server not in first]
        for server in others:
            server.upkeep.look()
        assert len(list(folder.iterdir())) == 1
        first[0].membership.leave()
        for server in others:
            server.upkeep.look()
        assert len(list(folder.iterdir())) == 2
        assert {server.backups.last_status.state for server in others} == {"ready"}


@pytest.fixture
def in_bucket(shell: Shell, s3: S3Server, tmp_path: Path) -> Shell:
    """Backs up into a bucket of its own prefix, while files stay in the data folder."""
    address = s3.settings("unused") | {"BACKUP_FOLDER": f"s3://documents/{tmp_path.name}/", "BACKUPS_KEPT": "2"}
    del address["FILES_URL"]
    return shell.under(**address)


def test_backups_go_to_a_bucket_stay_there_as_many_as_are_kept_and_are_restored_from_it(
    in_bucket: Shell, s3: S3Server, tmp_path: Path
) -> None:
    prefix = s3.folder / tmp_path.name
    prefix.mkdir()
    (tmp_path / "geese.txt").write_text("Geese hiss.")
    in_bucket("documents", "add", str(tmp_path / "geese.txt"))
    for day in ("01", "02", "03"):
        (prefix / f"assistant-202601{day}-000000.zip").write_bytes(b"old")
        age(prefix / f"assistant-202601{day}-000000.zip", 25)
    (prefix / "assistant-of-mine.zip").write_bytes(b"mine")
    with closing(open_services(in_bucket.environment)) as services:
        services.prepare()
        services.backups.run_if_due()
        status = services.backups.status()
    newest = f"{status.newest}".rpartition("/")[2]
    assert (status.state, status.newest) == ("ready", f"s3://documents/{tmp_path.name}/{newest}")
    assert sorted(path.name for path in prefix.iterdir()) == sorted(
        ["assistant-20260103-000000.zip", newest, "assistant-of-mine.zip"]
    )
    assert f"{status.newest} is 0.0 hours old" in in_bucket("status").stdout
    rehearsed = in_bucket("doctor", "--restore-test")
    assert f"{status.newest} can be restored: 0 turns, 1 document" in rehearsed.stdout
    assert [path for path in (tmp_path / "data").rglob("*") if "backup-" in path.name or path.suffix == ".part"] == []
    elsewhere = in_bucket.under(DATA_DIR=str(tmp_path / "elsewhere"))
    missing = elsewhere("restore", f"{status.newest}x")
    assert (missing.exit_code, "There is no backup at s3://documents/" in missing.output) == (1, True)
    assert not (tmp_path / "elsewhere").exists()
    restored = elsewhere("restore", str(status.newest))
    assert (restored.exit_code, "Restored into" in restored.output) == (0, True)
    assert "geese.txt" in elsewhere("documents", "list").stdout


def test_a_bucket_that_is_away_is_told_and_no_request_waits_for_it(
    in_bucket: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    away = in_bucket.under(S3_ENDPOINT_URL="http://127.0.0.1:9")
    with closing(open_services(away.environment)) as services, caplog.at_level(logging.ERROR, "rag_assistant"):
        services.prepare()
        services.membership.enter("server")
        services.upkeep.look()
        assert services.backups.last_status.state == "failed"
    assert "The backup failed: s3://documents/" in caplog.text
    assert "cannot be reached." in caplog.text


def test_a_failure_is_told_and_tried_again_later(
    services: Services, scheduled: Shell, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.rmdir()
    with caplog.at_level(logging.ERROR, logger="rag_assistant"):
        services.backups.run_if_due()
        services.backups.run_if_due()
    assert len([line for line in caplog.messages if line.startswith("The backup failed: ")]) == 1
    assert services.backups.status().state == "failed"
    folder.mkdir()
    services.backups._retry_at = 0.0
    services.backups.run_if_due()
    assert services.backups.status().state == "ready"
    assert "Backup                    ready, " in scheduled("status").stdout


def test_a_folder_that_cannot_be_looked_into_stops_nothing(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    environment = shell.under(BACKUP_FOLDER=f"/{'a' * 300}").environment
    with closing(open_services(environment)) as services, caplog.at_level(logging.ERROR, logger="rag_assistant"):
        services.prepare()
        assert services.backups.status().state == "failed"
        services.backups.run_if_due()
        services.backups.run_if_due()
    (line,) = [line for line in caplog.messages if "backup" in line]
    assert line.startswith("The backup failed: ")


def test_what_fails_once_does_not_end_the_upkeep(
    services: Services, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(*_: object) -> None:
        raise FileDamaged("geese.txt")

    def gone(_: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    services.membership.enter("server")
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, logger="rag_assistant"):
        patch.setattr("rag_assistant.storage.scheduled_backups.write_backup", damaged)
        services.upkeep.look()
        assert services.backups.status().state == "failed"
        patch.setattr("shutil.disk_usage", gone)
        services.upkeep.look()
    services.backups._retry_at = 0.0
    services.upkeep.look()
    assert len(list(folder.iterdir())) == 1


def test_a_restore_is_rehearsed_and_leaves_nothing(services: Services, scheduled: Shell, tmp_path: Path) -> None:
    assert "There is no backup" in scheduled("doctor", "--restore-test").output
    services.backups.run_if_due()
    rehearsed = scheduled("doctor", "--restore-test")
    assert (rehearsed.exit_code, rehearsed.stderr) == (0, "")
    assert f"{services.backups.status().newest} can be restored: 0 turns, 1 document, the state of " in rehearsed.stdout
    assert list((tmp_path / "data").glob("restore-*")) == []


def test_a_rehearsal_sees_a_file_that_is_another_one(services: Services, scheduled: Shell) -> None:
    services.backups.run_if_due()
    newest = services.backups.status().newest
    assert newest is not None
    with zipfile.ZipFile(newest) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(newest, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, b"Swans hiss." if name.startswith("uploads/") else content)
    rehearsed = scheduled("doctor", "--restore-test")
    assert rehearsed.exit_code != 0
    assert "is not sound: geese.txt." in rehearsed.output
