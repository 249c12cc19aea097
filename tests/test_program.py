"""``rag-assistant``: what it does without a command, with one, and with a wrong setting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assistant import __version__, cli
from rag_assistant.__main__ import program
from tests.cli.shell import Shell

PROJECT = Path(__file__).resolve().parents[1]


def run(shell: Shell, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a terminal does."""
    command = [sys.executable, "-m", "rag_assistant", *words]
    environment = os.environ | shell.environment | {"PORT": "0"}
    return subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)


def test_the_help_says_of_each_command_what_the_command_says_of_itself() -> None:
    for name, (_, said) in cli.COMMANDS.items():
        assert cli.command(name).get_short_help_str(limit=200) == said


def test_help_and_version_answer_without_loading_the_application() -> None:
    code = (
        "import sys; from rag_assistant.__main__ import program; "
        "program(sys.argv[1:], standalone_mode=False); print([m for m in ('flask', 'pydantic') if m in sys.modules])"
    )
    for word, said in (("--help", "reindex"), ("--version", __version__)):
        shown = subprocess.check_output([sys.executable, "-c", code, word], text=True, cwd=PROJECT)
        assert said in shown
        assert shown.endswith("[]\n")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
@pytest.mark.parametrize("entry", ["main()", "load_environment()"])
def test_what_is_in_its_memory_and_environment_no_other_process_of_the_same_person_reads(
    shell: Shell, entry: str
) -> None:
    code = (
        f"import ctypes\nfrom rag_assistant.__main__ import *\ntry:\n    {entry}\n"
        "finally:\n    print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    command = [sys.executable, "-c", code, "--version"]
    shown = subprocess.check_output(command, env=os.environ | shell.environment, text=True, cwd=PROJECT)
    assert shown.endswith("\n0\n") or shown == "0\n"


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_numpy_multiplies_with_one_thread_unless_the_environment_says_otherwise(
    given: dict[str, str], threads: str
) -> None:
    code = (
        "import os, sys; from rag_assistant.__main__ import load_environment; load_environment(); "
        "print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    )
    plain = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    output = subprocess.check_output([sys.executable, "-c", code], env=plain | given, cwd=PROJECT, text=True)
    assert output.split() == [threads, "False"]


@pytest.mark.long
def test_no_other_package_is_looked_through_for_plugins_of_pydantic() -> None:
    code = (
        "import importlib.metadata; from rag_assistant.__main__ import load_environment; load_environment(); "
        "asked = []; importlib.metadata.entry_points = lambda **kind: asked.append(kind) or (); "
        "import rag_assistant.settings.schema; print(asked)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT).strip() == "[]"


@pytest.mark.long
def test_the_help_of_a_checkout_names_the_program_as_it_was_typed() -> None:
    shown = subprocess.check_output([sys.executable, "-B", "app.py", "--help"], text=True, cwd=PROJECT)
    assert shown.startswith(f"Usage: {sys.executable} -B app.py [OPTIONS]")


def test_a_postgresql_that_is_away_is_named_in_one_line(shell: Shell) -> None:
    ended = shell.under(DATABASE_URL="postgresql://somebody:secret@127.0.0.1:1/nothing")("status")
    assert ended.exit_code == 1
    assert ended.stderr.splitlines()[-1].startswith("Error: PostgreSQL (database_url) cannot be reached: ")
    assert "Traceback" not in ended.output
    assert "secret" not in ended.output


def test_a_command_that_does_not_exist_is_named(shell: Shell) -> None:
    result = CliRunner().invoke(program, ["dokuments"])
    assert result.exit_code == 2
    assert "No such command 'dokuments'" in result.stderr


def test_a_wrong_setting_is_one_sentence(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(shell.environment["SETTINGS_FILE"]).write_text('{"max_history_turns": "ten"}')
    for name, value in shell.environment.items():
        monkeypatch.setenv(name, value)
    ended = CliRunner().invoke(program, ["documents", "list"])
    assert (ended.exit_code, ended.output.count("\n")) == (1, 1)
    assert 'settings.json line 1: max_history_turns is "ten"; it must be a whole number' in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("words", [("documents", "list"), ()])
def test_a_wrong_setting_is_one_sentence_in_a_terminal(shell: Shell, words: tuple[str, ...]) -> None:
    Path(shell.environment["SETTINGS_FILE"]).write_text('{"max_history_turns": "ten"}')
    ended = run(shell, *words)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert 'settings.json line 1: max_history_turns is "ten"; it must be a whole number' in ended.stderr


@pytest.mark.parametrize("words", [(), ("ask", "Why?"), ("history", "list"), ("accounts", "list"), ("status",)])
def test_a_data_folder_that_cannot_be_made_is_one_sentence(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "file" / "data"))
    monkeypatch.setenv("SETTINGS_FILE", str(tmp_path / "settings.json"))
    ended = CliRunner().invoke(program, words)
    assert ended.exit_code == 1
    assert ended.output.count("\n") == 1
    assert f'data_dir is "{tmp_path}/file/data": cannot create or write to this folder (Not a dir' in ended.output


def test_a_checkout_is_run_from_any_folder_on_the_data_of_its_own_settings(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MAX_HISTORY_TURNS=ten")  # Of whatever lies where the person happens to be.
    command = [sys.executable, str(PROJECT / "app.py"), "status"]
    ended = subprocess.run(command, env=os.environ | shell.environment, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (0, 1), ended.stderr
    assert "There is no" in ended.stderr
    assert ended.stdout.startswith("Version ")


def test_without_a_command_it_serves_on_the_address_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str, str]] = []

    def serve() -> None:
        served.append((os.environ["HOST"], os.environ["PORT"]))

    monkeypatch.setattr("rag_assistant.server.serve.serve", serve)
    monkeypatch.setenv("HOST", "before")
    monkeypatch.setenv("PORT", "before")
    assert CliRunner().invoke(program, ["--host", "localhost", "--port", "8001"]).exit_code == 0
    assert served == [("localhost", "8001")]


@pytest.mark.long
def test_what_few_requests_need_is_not_loaded_with_the_application(tmp_path: Path) -> None:
    code = "import sys; from rag_assistant.web import create_app; create_app(); print(*sys.modules)"
    environment = os.environ | {"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(tmp_path / "settings.json")}
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT, env=environment).split()
    assert {"argon2", "openai", "rag_assistant.web.openapi.document"}.isdisjoint(loaded)
