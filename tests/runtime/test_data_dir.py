"""The folder in which everything is kept."""

from pathlib import Path

import pytest

from rag_assistant.errors import SettingsError
from rag_assistant.runtime.data_dir import open_data_dir
from rag_assistant.settings import package_files


def test_the_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert open_data_dir(tmp_path / "share" / "data").is_dir()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r'data_dir is ".*file/data"; this folder cannot be made .* Set DATA_DIR'):
        open_data_dir(tmp_path / "file" / "data")


def test_paths_of_a_checkout_count_from_the_folder_of_app_py() -> None:
    assert (package_files.home() / "app.py").is_file()


def test_paths_of_an_installed_copy_count_from_the_data_folder_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_files, "IS_INSTALLED", True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert package_files.home() == tmp_path / "rag-assistant"
