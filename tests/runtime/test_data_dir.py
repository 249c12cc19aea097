"""The folder in which everything is kept."""

from pathlib import Path

import pytest

from rag_assistant.errors import SettingsError
from rag_assistant.runtime.data_dir import LOCK_FILE, open_data_dir
from rag_assistant.settings import package_files


def test_the_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert open_data_dir(tmp_path / "share" / "data").is_dir()


def test_a_new_folder_is_told_and_one_that_is_there_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_data_dir(tmp_path / "data")
    assert f"New data folder: {tmp_path}/data. If you have data elsewhere, set DATA_DIR" in caplog.text
    caplog.clear()
    open_data_dir(tmp_path / "data")
    assert caplog.text == ""


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
