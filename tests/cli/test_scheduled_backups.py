"""Backups that the server makes by itself, and the rehearsal of a restore."""

import logging
import os
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert

from rag_assistant.records.errors import FileDamaged
from rag_assistant.services import Services, open_services
from rag_assistant.storage.tables import processes
from tests.cli.shell import Shell

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
    newest = services.backups.status().newest
    assert newest is not None
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["assistant-20260103-000000.zip", newest.name, "assistant-of-mine.zip"]
    )
    assert zipfile.is_zipfile(newest)
    services.backups.run_if_due()
    assert services.backups.status().newest == newest
    assert services.backups.status().state == "ready"
    age(newest, 49)
    assert services.backups.status().state == "late"


def test_only_one_of_several_processes_makes_it(services: Services, folder: Path) -> None:
    services.membership.enter("server")
    assert services.membership.leases.is_first_worker
    services._look_after()
    assert len(list(folder.iterdir())) == 1
    earlier = {"id": "0", "installation": "another", "kind": "worker", "beats": 0, "settings": {}}
    with services.database.write() as connection:
        connection.execute(insert(processes).values(earlier))
    assert not services.membership.leases.is_first_worker
    (services.backups.status().newest or folder).unlink()
    services._look_after()
    assert list(folder.iterdir()) == []


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
        services._look_after()
        assert services.backups.status().state == "failed"
        patch.setattr("shutil.disk_usage", gone)
        services._look_after()
    services.backups._retry_at = 0.0
    services._look_after()
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
