"""The folder in which everything is kept."""

import errno
import stat
import threading
from pathlib import Path

import pytest

from rag_assistant.records.errors import SettingsError
from rag_assistant.runtime.data_dir import (
    INSTALLATION_FILE,
    LOCK_FILE,
    installation_id,
    lock_data_dir,
    open_data_dir,
    open_to_others,
)
from rag_assistant.settings import package_files


def test_the_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert open_data_dir(tmp_path / "share" / "data").is_dir()


def test_a_new_folder_is_told_and_one_that_is_there_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_data_dir(tmp_path / "data")
    assert f"New data folder: {tmp_path}/data. If your data is in another folder, set DATA_DIR" in caplog.text
    caplog.clear()
    open_data_dir(tmp_path / "data")
    assert caplog.text == ""


def test_what_is_kept_is_for_its_owner_alone(tmp_path: Path) -> None:
    made = open_data_dir(tmp_path / "data")
    installation_id(made)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()} == {0o600}
    assert list(open_to_others(made)) == []


def test_a_folder_that_others_can_open_stays_as_it_is_and_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    assert stat.S_IMODE(open_data_dir(tmp_path).stat().st_mode) == 0o775
    told = f"Every user of this machine can open {tmp_path}. To keep them out: chmod 770 {tmp_path}"
    assert list(open_to_others(tmp_path)) == [told], "a group may have been meant"


def test_an_installation_without_a_name_gets_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / INSTALLATION_FILE).touch()
    name = installation_id(tmp_path)
    assert len(name) == 32
    assert installation_id(tmp_path) == name


def test_a_full_disk_at_the_first_start_is_a_sentence_and_leaves_no_empty_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rag_assistant.runtime.data_dir.os.fsync", full)
    with pytest.raises(SettingsError, match=r"cannot write to it \(No space left on device\)"):
        installation_id(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/data", "read-only"])
def test_a_folder_that_cannot_be_made_or_written_to_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    # A folder in the place of a file refuses even the superuser, whom permissions do not stop.
    (tmp_path / "read-only" / LOCK_FILE).mkdir(parents=True)
    with pytest.raises(SettingsError, match=rf'data_dir is ".*{name}": cannot create or write to this folder .*'):
        open_data_dir(tmp_path / name)


def test_paths_of_a_checkout_count_from_the_folder_of_app_py() -> None:
    assert (package_files.home() / "app.py").is_file()


def test_paths_of_an_installed_copy_count_from_the_data_folder_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_files, "IS_INSTALLED", True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert package_files.home() == tmp_path / "rag-assistant"


def test_a_server_waits_a_little_for_one_that_is_ending(tmp_path: Path) -> None:
    ending = lock_data_dir(tmp_path)
    with pytest.raises(SettingsError, match="uses it already"):
        lock_data_dir(tmp_path)
    threading.Timer(0.2, ending.close).start()
    lock_data_dir(tmp_path, patience_seconds=30).close()
