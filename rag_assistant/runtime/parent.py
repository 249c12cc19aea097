"""End a process together with the one that started it, whatever the moment.

``python -I parent.py PROGRAM ARGUMENT ...`` becomes that program after asking for it, so nothing of ours is imported.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PARENT = "RAG_ASSISTANT_PARENT"
PR_SET_PDEATHSIG = 1


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


def ending_with_us(command: Sequence[str]) -> list[str]:
    """Return the command that runs another one until this process ends; it needs ``parent_variable``."""
    return [sys.executable, "-I", __file__, *command]


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - becoming the named program is its purpose
