"""Completion in the shells that people have: what the program offers, and that each shell offers it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
# Each loads the completion as docs/api.md says, and prints what it offers behind "documents add".
SHELLS = {
    "bash": """eval "$(_RAG_ASSISTANT_COMPLETE=bash_source rag-assistant)"
        COMP_WORDS=(rag-assistant documents add); COMP_CWORD=2
        complete -p rag-assistant >/dev/null && _rag_assistant_completion rag-assistant
        printf '%s\\n' "${COMPREPLY[@]}" """,
    "zsh": """compdef() { :; }
        eval "$(_RAG_ASSISTANT_COMPLETE=zsh_source rag-assistant)"
        words=(rag-assistant documents add); CURRENT=3
        _describe() { print -l -- "${(@P)3}"; }
        _rag_assistant_completion""",
    "fish": """_RAG_ASSISTANT_COMPLETE=fish_source rag-assistant | source
        complete --do-complete 'rag-assistant documents add'""",
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A program on the path, as the wheel installs it, in a folder that holds no settings and gets none."""
    program = tmp_path / "bin" / "rag-assistant"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom rag_assistant.__main__ import main\nmain()\n")
    program.chmod(0o755)
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "HOME": str(tmp_path),
        "SETTINGS_FILE": str(tmp_path / "broken.json"),
        "DATA_DIR": str(tmp_path / "data"),
    }


@pytest.mark.long
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_offers_what_the_program_has(shell: str, environment: dict[str, str], tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "broken.json").write_text("{")
    done = subprocess.run(
        [program, "-c", SHELLS[shell]], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    offered = {line.split("\t")[0].split(":")[0] for line in done.stdout.splitlines()}
    assert offered == {"add", "add-page"}, done.stderr
    assert not (tmp_path / "data").exists(), "nothing is made for it"
