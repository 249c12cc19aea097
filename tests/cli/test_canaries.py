"""The canary of every secret is in no backup, no export, and in nothing that a command prints."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.testkit.people import PASSWORD, quick_passwords
from tests.testkit.stub_model import StubModel
from tests.web.canaries import CANARIES, Found, echoing, secret_settings


@pytest.mark.long
def test_no_secret_is_in_a_backup_an_export_or_what_a_command_prints(
    shell: Shell, stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = secret_settings(stub, None, tmp_path)
    (tmp_path / "settings.json").write_text(json.dumps({"openai_api_key": CANARIES["openai_api_key"]}))
    del secrets["OPENAI_API_KEY"]
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    run = shell.under(**secrets)
    found, issued = Found(), {}
    with quick_passwords():
        run("accounts", "add", "Ann", "--admin", typed=f"{PASSWORD}\n{PASSWORD}\n")
        made = run("accounts", "token", "Ann", "--name", "Laptop", "--scope", "read")
        token = re.search(r"rag_[\w-]{43}", made.output)
        assert token is not None, made.output
        issued = {"token": token[0], "password": PASSWORD}
    (tmp_path / "note.txt").write_text("The heron hisses at dawn.")
    for words in (
        ("documents", "add", str(tmp_path / "note.txt")),
        ("ask", "When does the heron hiss?"),
        ("status",),
        ("status", "--json"),
        ("accounts", "list"),
        ("accounts", "log"),
        ("history", "list"),
        ("doctor",),
        ("model", "test"),
        ("export", str(tmp_path / "export.zip")),
        ("backup", str(tmp_path / "backup.zip")),
    ):
        found.add(" ".join(words[:2]), run(*words).output)
    monkeypatch.setattr(stub, "next_reply", lambda seen: echoing(seen, 401))
    for words in (("ask", "Why?"), ("model", "test")):
        found.add(f"failed {words[0]}", run(*words).output)
    for name in ("export.zip", "backup.zip"):
        found.add(name, (tmp_path / name).read_bytes())
    assert "archive.jsonl" in repr(found.texts)
    assert found.hits(CANARIES | issued) == []
