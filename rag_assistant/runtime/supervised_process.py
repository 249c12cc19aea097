"""Child processes that are started in the background, supervised, restarted, and ended together with us.

``python -m rag_assistant.runtime.supervised_process PROGRAM ARGUMENT ...`` becomes that program, after asking the
kernel to end it together with its parent. A process that reads its input to the end doesn't need that.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from rag_assistant.settings.package_files import FILES, IS_INSTALLED

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
PLAIN_VARIABLES = frozenset(
    "PATH HOME LANG LC_ALL LC_CTYPE TZ TMPDIR VIRTUAL_ENV PYTHONPATH PYTHONUTF8 LD_LIBRARY_PATH".split()
)
RESTART_BACKOFF_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)

State = Literal["off", "starting", "ready", "failed"]
Service = TypeVar("Service")
Process = subprocess.Popen[str]


class SupervisedProcess(Generic[Service]):
    """Keeps one process running. ``service`` is what it offers, such as its address, once it is ready.

    ``launch`` starts the process; ``ready`` waits until it serves and returns the service, ``None`` if it never will.
    """

    def __init__(self, name: str, launch: Callable[[], Process], ready: Callable[[Process], Service | None]) -> None:
        self._name = name
        self._launch = launch
        self._ready = ready
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._process: Process | None = None
        self._service: Service | None = None
        self.state: State = "off"
        self.problem: str | None = None

    def start(self) -> None:
        """Start the process in the background, once."""
        with self._changed:
            if self.state != "off":
                return
            self.state = "starting"
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    @property
    def service(self) -> Service | None:
        """What the process offers now; ``None`` while it isn't running."""
        return self._service

    @property
    def pid(self) -> int | None:
        """The process id, for monitoring."""
        return self._process.pid if self._process is not None else None

    def wait(self, seconds: float, ended: Callable[[], bool] = lambda: False) -> Service | None:
        """Return the service as soon as it is ready; ``None`` if it failed, ``ended``, or after ``seconds``."""
        waited = 0.0
        with self._changed:
            while self._service is None and self.state == "starting" and not ended() and waited < seconds:
                self._changed.wait(0.2)
                waited += 0.2
            return self._service

    def close(self) -> None:
        """Stop the process permanently."""
        self._closing.set()
        self.kill()

    def kill(self) -> None:
        """Kill the process; unless we are closing, it is restarted."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _run(self) -> None:
        """Restart the process until we close; this thread must outlive its children."""
        failures = 0
        while not self._closing.is_set():
            served = self._run_once()
            failures = 0 if served else min(failures + 1, len(RESTART_BACKOFF_SECONDS) - 1)
            if not self._closing.wait(RESTART_BACKOFF_SECONDS[failures]) and self._process is not None:
                log.warning("%s ended; restarting it.", self._name)

    def _run_once(self) -> bool:
        """Run one process from start to end; return whether it ever served."""
        try:
            process = self._process = self._launch()
        except Exception as error:  # noqa: BLE001 - whatever keeps it from starting is the same to those who wait
            if str(error) != self.problem:  # Retried every minute, but logged once.
                log.error("%s cannot be started: %s", self._name, error)
            self._become("failed", None, str(error))
            return False
        service = self._ready(process)
        if service is not None:
            self._become("ready", service, None)
            log.info("%s is ready.", self._name)
        else:
            self._become("failed", None, "Its process ended before it was ready.")
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if service is not None:
            self._become("starting", None, None)
        return service is not None

    def _become(self, state: State, service: Service | None, problem: str | None) -> None:
        with self._changed:
            self.state, self._service, self.problem = state, service, problem
            self._changed.notify_all()


def plain_environment() -> dict[str, str]:
    """Return the environment for a child: what it needs to run, without our keys and passwords.

    In a checkout it finds our modules wherever the server was started.
    """
    needed = {name: value for name, value in os.environ.items() if name in PLAIN_VARIABLES}
    if not IS_INSTALLED:
        needed["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FILES), needed.get("PYTHONPATH"))))
    return needed


def end_with_parent() -> None:
    """Ask Linux to kill this process when the thread that started it ends; elsewhere, do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def close_memory() -> None:
    """Protect the keys in this process: on Linux, no other process of the same user can read its memory from now on.

    Nor are they in a core dump. Forked processes inherit this, executed programs don't.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - becoming the named program is its purpose
