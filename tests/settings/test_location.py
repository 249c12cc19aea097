"""settings.json comes to be at the first start, and is never written after that."""

import json
import logging
import os
import stat
from pathlib import Path

import pytest

from rag_assistant.settings.live import open_settings, provide_settings_file, settings_path
from rag_assistant.settings.package_files import SETTINGS_EXAMPLE, SETTINGS_SCHEMA


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed copy, which nobody has made yet."""
    path = tmp_path / "share" / "rag-assistant"
    monkeypatch.setattr("rag_assistant.settings.live.home", lambda: path)
    return path


def test_the_first_start_makes_the_settings_with_their_schema_beside_them(folder: Path) -> None:
    provide_settings_file({})
    made = folder / "settings.json"
    assert made.read_bytes() == SETTINGS_EXAMPLE.read_bytes()
    assert (folder / json.loads(made.read_text())["$schema"]).read_bytes() == SETTINGS_SCHEMA.read_bytes()
    assert open_settings({}).origins["max_history_turns"] == "file"


def test_the_settings_are_for_their_owner_alone_whichever_command_makes_them(folder: Path) -> None:
    before = os.umask(0o022)
    try:
        provide_settings_file({})
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "settings.json").stat().st_mode) == 0o600


def test_a_persons_own_file_stays_as_it_is(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text("{ half written")
    provide_settings_file({})
    assert (folder / "settings.json").read_text() == "{ half written"


def test_the_schema_of_an_older_version_is_replaced(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "settings.schema.json").write_text("{}")
    provide_settings_file({})
    assert (folder / "settings.schema.json").read_bytes() == SETTINGS_SCHEMA.read_bytes()


def test_a_schema_that_is_right_is_not_written_again(folder: Path) -> None:
    provide_settings_file({})
    os.utime(folder / "settings.schema.json", (1, 1))
    provide_settings_file({})
    assert (folder / "settings.schema.json").stat().st_mtime == 1


def test_a_folder_that_cannot_be_written_to_is_one_sentence(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.parent.mkdir()
    folder.touch()  # A file in its place refuses even the superuser, whom permissions do not stop.
    provide_settings_file({})
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"{folder}/settings.json or its schema cannot be created" in caplog.text


def test_a_file_that_is_named_and_absent_is_not_made(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    named = {"SETTINGS_FILE": "mine.json"}
    assert settings_path(named) == folder / "mine.json"
    provide_settings_file(named)
    assert not folder.exists()
    assert f"There is no {folder}/mine.json; all settings have their defaults." in caplog.text
    assert open_settings(named).current.max_history_turns == 5
