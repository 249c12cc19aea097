"""What was said in a conversation does not steer the terminal that shows it."""

import json
from pathlib import Path

import pytest

from rag_assistant.cli import commands
from tests.cli.shell import Shell
from tests.conversations.exchange import samples
from tests.testkit.stub_model import Reply, StubModel

# Writes to the clipboard, gives the window a title, and begins a line anew.
STEERING = "\x1b]52;c;cm0=\x07\x9d0;owned\x9c\rfake"


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "is_terminal", lambda: True)


@pytest.mark.usefixtures("on_a_terminal")
def test_an_answer_a_title_and_an_import_steer_no_terminal(shell: Shell, stub: StubModel, tmp_path: Path) -> None:
    stub.default = Reply(STEERING)
    chat = samples.open_webui()[0] | {"title": f"{STEERING} imported"}
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    printed = [
        shell(*words, color=True)
        for words in (
            ("ask", f"Why {STEERING}?"),
            ("history", "list"),
            ("history", "show", "1"),
            ("history", "export", "1"),
            ("import", str(tmp_path / "chat.json")),
        )
    ]
    for one in printed:
        assert one.exit_code == 0, one.output
        assert "fake" in one.output
        assert not set(one.output.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")) & set(
            "\x1b\x07\x9d\x9c\r"
        )


def test_what_goes_to_a_program_stays_as_it_is(shell: Shell, stub: StubModel) -> None:
    stub.default = Reply("\x07a\r\n")
    assert json.loads(shell("ask", "--json", "Why?").stdout)["answer"] == "\x07a\r\n"
