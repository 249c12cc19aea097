"""A child process ends with the one that started it, whatever the moment."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from rag_assistant.runtime.parent import PARENT, ending_with_us, parent_variable
from rag_assistant.settings.package_files import PACKAGE
from tests.web.conftest import until

PROGRAMS = [
    path for path in sorted(PACKAGE.rglob("*.py")) if 'if __name__ == "__main__":' in path.read_text()
    and path.name not in ("__main__.py", "parent.py")
]  # fmt: skip
PARENT_OF_A_SLEEPER = """
import subprocess, sys
from rag_assistant.runtime.parent import ending_with_us, parent_variable
child = subprocess.Popen(ending_with_us(["sleep", "60"]), env=parent_variable() | {"PATH": sys.argv[1]})
print(child.pid, flush=True)
child.wait()
"""


def ended_process() -> int:
    """Return the id of a process that is no more."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("is_sleeping", [False, True])
def test_a_program_ends_with_the_parent_that_is_killed(is_sleeping: bool) -> None:
    command = [sys.executable, "-c", PARENT_OF_A_SLEEPER, os.environ["PATH"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        if is_sleeping:
            until(lambda: child.name() == "sleep")
        parent.kill()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_program_whose_parent_ended_before_it_could_ask_never_runs() -> None:
    command = ending_with_us(["echo", "running"])
    ran = subprocess.run(command, env=os.environ | {PARENT: str(ended_process())}, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, b"")
    ran = subprocess.run(command, env=os.environ | parent_variable(), capture_output=True, check=True)
    assert ran.stdout == b"running\n"


@pytest.mark.parametrize(
    ("written", "passed", "told"),
    [
        (b"geese\nswans\nducks", b"geese\nswans\nducks", b""),
        (b"geese\n12345678\nducks\n", b"geese\n", b"echo wrote a line of more than 8 bytes, and was ended.\n"),
        (b"123456789", b"", b"echo wrote a line of more than 8 bytes, and was ended.\n"),
    ],
)
def test_a_program_ends_with_a_line_that_is_too_long(written: bytes, passed: bytes, told: bytes) -> None:
    command = ending_with_us(["echo", "-n", written.decode()], 8)
    ran = subprocess.run(command, env=os.environ | parent_variable(), capture_output=True, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == (passed, told, int(bool(told)))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_each_of_our_programs_asks_before_it_does_anything(path: Path) -> None:
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    environment = os.environ | {PARENT: str(ended_process())}
    command = [sys.executable, "-m", module]  # Without arguments, it would fail loudly.
    ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"")


def test_every_process_is_started_so_that_it_ends_with_us() -> None:
    starting = ("subprocess.Popen(", "subprocess.run(", "StdioServerParameters(command")
    files = [path for path in PACKAGE.rglob("*.py") if any(one in path.read_text() for one in starting)]
    assert len(files) >= 5
    for path in files:
        text = path.read_text()
        assert 'sys.executable, "-m"' in text or "ending_with_us(" in text, path.name
