"""End a process together with the one that started it, whatever the moment.

``python -I parent.py PROGRAM ARGUMENT ...`` becomes that program after asking for it, so nothing of ours is imported.
``python -I parent.py --max-line BYTES PROGRAM ARGUMENT ...`` stays, and passes on the lines that the program writes.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, cast

PARENT = "RAG_ASSISTANT_PARENT"
PR_SET_PDEATHSIG = 1
MAX_LINE = "--max-line"


def end_with_parent() -> None:
    """Have Linux kill this process when the thread that started it ends; end at once if the parent is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Between our start and the call above, nobody would have told.
    if int(os.environ.pop(PARENT, os.getppid())) != os.getppid():
        os._exit(1)


def parent_variable() -> dict[str, str]:
    """Return what tells a child of this process who its parent is."""
    return {PARENT: str(os.getpid())}


def ending_with_us(command: Sequence[str], max_line_bytes: int | None = None) -> list[str]:
    """Return the command that runs another one until this process ends; it needs ``parent_variable``.

    It also ends with the first line that is longer than ``max_line_bytes``.
    """
    options = [] if max_line_bytes is None else [MAX_LINE, str(max_line_bytes)]
    return [sys.executable, "-I", __file__, *options, *command]


def _pass_lines(max_bytes: int, command: Sequence[str]) -> None:
    environment = os.environ | parent_variable()
    with subprocess.Popen(ending_with_us(command), stdout=subprocess.PIPE, env=environment) as program:
        while line := cast("IO[bytes]", program.stdout).readline(max_bytes + 1):
            if len(line) > max_bytes:
                program.kill()
                sys.exit(f"{command[0]} wrote a line of more than {max_bytes:,} bytes, and was ended.")
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    end_with_parent()
    if sys.argv[1] == MAX_LINE:
        _pass_lines(int(sys.argv[2]), sys.argv[3:])
        sys.exit()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - becoming the named program is its purpose
