"""Child processes that are started in the background, supervised, restarted, and ended together with us (parent.py)."""

import ctypes
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from rag_assistant.runtime.parent import parent_variable
from rag_assistant.settings.package_files import FILES, IS_INSTALLED

log = logging.getLogger(__name__)

PR_SET_DUMPABLE = 4
PLAIN_VARIABLES = frozenset(
    "PATH HOME LANG LC_ALL LC_CTYPE TZ TMPDIR VIRTUAL_ENV PYTHONPATH PYTHONUTF8 LD_LIBRARY_PATH".split()
)
RESTART_BACKOFF_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)
SLOW_SECONDS = 30.0

State = Literal["off", "starting", "slow", "ready", "failed"]
Service = TypeVar("Service")
Process = subprocess.Popen[str]


class SupervisedProcess(Generic[Service]):
    """Keeps one process running. ``service`` is what it offers, such as its address, once it is ready.

    ``launch`` starts the process; ``ready`` waits until it serves and returns the service, ``None`` if it ended before,
    or raises what keeps it from serving. Time is no sign of failure: a process that takes long to start is ``slow``,
    and is waited for. After its end, it has ``failed`` until it is launched again.
    """

    def __init__(self, name: str, launch: Callable[[], Process], ready: Callable[[Process], Service | None]) -> None:
        self._name = name
        self._launch = launch
        self._ready = ready
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._process: Process | None = None
        self.service: Service | None = None
        self._state: State = "off"
        self._since = 0.0
        self.problem: str | None = None

    def start(self) -> None:
        """Start the process in the background, once."""
        with self._changed:
            if self._state != "off":
                return
            self._become("starting")
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    @property
    def state(self) -> State:
        """What the process is doing now."""
        is_slow = self._state == "starting" and time.monotonic() - self._since > SLOW_SECONDS
        return "slow" if is_slow else self._state

    @property
    def pid(self) -> int | None:
        """The process id, for monitoring."""
        return self._process.pid if self._process is not None else None

    def wait(self, seconds: float, ended: Callable[[], bool] = lambda: False) -> Service | None:
        """Return the service as soon as it is ready; ``None`` if it failed, ``ended``, or after ``seconds``."""
        waited = 0.0
        with self._changed:
            while self.service is None and self._state == "starting" and not ended() and waited < seconds:
                self._changed.wait(0.2)
                waited += 0.2
            return self.service

    def close(self) -> None:
        """Stop the process permanently."""
        with self._changed:  # A process is either launched by now, or never.
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
        self._become("starting")
        process = service = None
        problem: str | None = "Its process ended before it was ready."
        try:
            with self._changed:
                if self._closing.is_set():
                    return False
                process = self._process = self._launch()
            service = self._ready(process)
        except Exception as error:  # noqa: BLE001 - whatever keeps it from starting is the same to those who wait
            problem = str(error) or problem
        if service is not None:
            problem = None
            log.info("%s is ready.", self._name)
        elif problem != self.problem and not self._closing.is_set():  # Retried every minute, but logged once.
            log.error("%s cannot be started: %s", self._name, problem)
        self.problem = problem
        self._become("failed" if service is None else "ready", service)
        if process is not None:
            with process:  # Its end closes the pipes.
                if service is None:
                    process.kill()
                process.wait()
        if service is not None:
            self._become("starting")
        return service is not None

    def _become(self, state: State, service: Service | None = None) -> None:
        with self._changed:
            self._state, self.service, self._since = state, service, time.monotonic()
            self._changed.notify_all()


def plain_environment() -> dict[str, str]:
    """Return the environment for a child: what it needs to run and to end with us, without our keys and passwords.

    In a checkout it finds our modules wherever the server was started.
    """
    needed = {name: value for name, value in os.environ.items() if name in PLAIN_VARIABLES}
    if not IS_INSTALLED:
        needed["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FILES), needed.get("PYTHONPATH"))))
    return needed | parent_variable()


def close_memory() -> None:
    """Protect the keys in this process: on Linux, no other process of the same user can read its memory from now on.

    Nor are they in a core dump. Forked processes inherit this, executed programs don't.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
