"""Everything in one file, into another installation; and conversations of other products."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.web import create_app
from tests.cli.shell import Shell
from tests.conversations.exchange import samples
from tests.testkit.stub_model import Reply, StubModel


@pytest.fixture
def archive(shell: Shell, stub: StubModel, tmp_path: Path) -> Path:
    (tmp_path / "geese.txt").write_text("Geese hiss at lighthouse keepers.")
    shell("documents", "add", "--tag", "sea", str(tmp_path / "geese.txt"))
    stub.default = Reply("They hiss [1].")
    assert shell("ask", "What do geese do at lighthouse keepers?").exit_code == 0
    (tmp_path / "chatgpt.json").write_text(json.dumps(samples.chatgpt()))
    assert shell("import", str(tmp_path / "chatgpt.json")).exit_code == 0
    app = create_app(shell.environment)
    assert app.test_client().patch("/api/documents/1", json={"date": "2023-05"}).status_code == 200
    app.extensions["assistant"].close()
    made = shell("export", str(tmp_path / "all.zip"))
    assert made.exit_code == 0, made.output
    assert "all.zip: 4 conversations, 1 document." in made.stdout
    return tmp_path / "all.zip"


def elsewhere(shell: Shell, tmp_path: Path) -> Shell:
    return shell.under(DATA_DIR=str(tmp_path / "new" / "data"), SETTINGS_FILE=str(tmp_path / "new" / "settings.json"))


def state(shell: Shell) -> list[Any]:
    """Return what an installation holds."""
    app = create_app(shell.environment)
    client: Any = app.test_client()
    try:
        documents = client.get("/api/documents").json["documents"]
        own = ("document_id", "name", "tags", "state", "sha256", "date", "date_from")
        named = [[one[name] for name in own] for one in documents]
        said = [client.get(f"/api/conversations/{n}/turns").json["turns"] for n in range(1, 5)]
        return [named, client.get("/api/conversations").json, said]
    finally:
        app.extensions["assistant"].close()


def test_an_archive_gives_another_installation_the_same(shell: Shell, archive: Path, tmp_path: Path) -> None:
    there = elsewhere(shell, tmp_path)
    imported = there("import", str(archive))
    assert imported.exit_code == 0, imported.output
    assert "geese.txt: added, document 1\n" in imported.stdout
    assert "4 conversations imported.\n" in imported.stdout
    assert state(there) == state(shell)


@pytest.mark.long
def test_an_archive_is_private_and_nothing_is_written_over(shell: Shell, archive: Path) -> None:
    assert archive.stat().st_mode & 0o077 == 0
    with zipfile.ZipFile(archive) as packed:
        assert len(packed.namelist()) == 2
    again = shell("export", str(archive))
    assert (again.exit_code, "all.zip exists already" in again.stderr) == (1, True)


def test_another_file_is_refused_by_what_it_holds(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "recipes.json").write_text('{"recipes": []}')
    refused = shell("import", str(tmp_path / "recipes.json"))
    assert refused.exit_code == 1
    assert 'The file holds an object with the fields "recipes". It must be conversations.json' in refused.stderr
