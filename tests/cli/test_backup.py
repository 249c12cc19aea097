"""A backup made while somebody works, and what a new installation has after it was restored."""

import json
import zipfile
from pathlib import Path

import pytest

from rag_assistant.runtime.data_dir import lock_data_dir
from rag_assistant.web import create_app
from tests.cli.shell import Shell
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel


@pytest.fixture
def backup(shell: Shell, stub: StubModel, tmp_path: Path) -> Path:
    """A backup of a conversation, a document and settings with a key, made while a server holds the folder."""
    (tmp_path / "settings.json").write_text('{"max_history_turns": 7, "openai_api_key": "sk-canary"}')
    (tmp_path / "geese.txt").write_text("Geese hiss.")
    shell("documents", "add", str(tmp_path / "geese.txt"))
    stub.replies.append(Reply("They hiss."))
    shell("ask", "What do geese do?")
    with lock_data_dir(tmp_path / "data"):
        made = shell("backup", str(tmp_path / "one.zip"))
    assert made.exit_code == 0, made.output
    assert "one.zip: 1 document, " in made.stdout
    return tmp_path / "one.zip"


def elsewhere(shell: Shell, tmp_path: Path) -> Shell:
    """Return a shell of another installation, where nothing is yet."""
    return shell.under(DATA_DIR=str(tmp_path / "new" / "data"), SETTINGS_FILE=str(tmp_path / "new" / "settings.json"))


def test_a_backup_is_restored_elsewhere_with_everything_that_was_said(
    shell: Shell, backup: Path, tmp_path: Path
) -> None:
    there = elsewhere(shell, tmp_path)
    restored = there("restore", str(backup))
    assert restored.exit_code == 0, restored.output
    assert restored.stdout.startswith("Restored into "), "and no bar, where there is no terminal"
    app = create_app(there.environment)
    client = app.test_client()
    turns = json.loads(client.get("/api/conversations/1/turns").data)["turns"]
    assert [(turn["question"], turn["answer"]) for turn in turns] == [("What do geese do?", "They hiss.")]
    with client.get("/api/documents/1/file", buffered=True) as file:
        assert file.data == b"Geese hiss."
    found = json.loads(client.get("/api/search?q=geese").data)["passages"]
    assert [passage["text"] for passage in found] == ["Geese hiss."]
    assert app.extensions["assistant"].settings.current.max_history_turns == 7
    app.extensions["assistant"].close()
    assert there("doctor").stdout.endswith("Everything is consistent.\n")
    settings = tmp_path / "new" / "settings.json"
    settings.write_text('{"openai_api_key": "sk-canary"}')
    settings.chmod(0o644)
    assert f"can open {settings}. To keep them out: chmod 640 {settings}" in there("doctor").stdout


def test_a_backup_holds_no_key_and_is_private(backup: Path) -> None:
    with zipfile.ZipFile(backup) as archive:
        assert json.loads(archive.read("settings.json")) == {"max_history_turns": 7}
        assert not [name for name in archive.namelist() if b"sk-canary" in archive.read(name)]
    assert backup.stat().st_mode & 0o077 == 0


@pytest.mark.long
def test_settings_that_were_changed_stay_and_those_of_the_backup_lie_beside_them(
    shell: Shell, backup: Path, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "settings.json").write_text('{"max_history_turns": 1}')
    said = elsewhere(shell, tmp_path)("restore", str(backup)).stdout
    assert f"{tmp_path}/new/settings.restored.json" in said
    assert json.loads((tmp_path / "new" / "settings.restored.json").read_text()) == {"max_history_turns": 7}
    assert json.loads((tmp_path / "new" / "settings.json").read_text()) == {"max_history_turns": 1}


@pytest.mark.long
def test_settings_that_are_those_of_the_backup_stay_alone(shell: Shell, backup: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    kept = '{"openai_api_key": "sk-here", "max_history_turns": 7}'
    (tmp_path / "new" / "settings.json").write_text(kept)
    assert f"{tmp_path}/new/settings.json" in elsewhere(shell, tmp_path)("restore", str(backup)).stdout
    assert not (tmp_path / "new" / "settings.restored.json").exists()
    assert (tmp_path / "new" / "settings.json").read_text() == kept


def test_nothing_is_written_over(shell: Shell, backup: Path) -> None:
    before = backup.read_bytes()
    again = shell("backup", str(backup))
    assert (again.exit_code, backup.read_bytes()) == (1, before)
    assert f"{backup} exists already" in again.stderr
    over = shell("restore", str(backup))
    assert over.exit_code == 1
    assert "holds data already" in over.stderr


@pytest.mark.parametrize(
    "damage", sample(["cut", "changed", *(pytest.param(one, marks=pytest.mark.long) for one in ("foreign", "newer"))])
)
def test_a_backup_that_is_not_whole_restores_nothing(shell: Shell, backup: Path, tmp_path: Path, damage: str) -> None:
    content = backup.read_bytes()
    if damage == "cut":
        backup.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        backup.write_bytes(content[:2000] + b"XXXX" + content[2004:])
    else:
        with zipfile.ZipFile(backup, "w") as archive:
            schema = "9999" if damage == "newer" else "0001"
            archive.writestr("backup.json", json.dumps({"version": "9.9", "schema": schema}))
            archive.writestr("../escaped", "x")
    there = elsewhere(shell, tmp_path)
    refused = there("restore", str(backup))
    assert refused.exit_code == 1
    assert (
        "made by version 9.9, which is newer" if damage == "newer" else "is not a complete backup"
    ) in refused.stderr
    assert not (tmp_path / "new" / "data" / "assistant.db").exists()
    assert not (tmp_path / "new" / "data").exists()


def test_what_cannot_be_written_is_one_sentence(shell: Shell, tmp_path: Path) -> None:
    refused = shell("backup", str(tmp_path / "nowhere" / "one.zip"))
    assert refused.exit_code == 1
    assert "nowhere/one.zip cannot be written (No such file or directory)" in refused.stderr
    gone = elsewhere(shell, tmp_path)("restore", str(tmp_path / "none.zip"))
    assert "none.zip cannot be restored (No such file or directory)" in gone.stderr
