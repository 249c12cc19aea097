"""Our own process for Chroma: started, asked, and its folder put aside if it is damaged."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import socket
import subprocess
import sys
from collections import deque
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rag_assistant.runtime.supervised_process import Process, SupervisedProcess, plain_environment

log = logging.getLogger(__name__)

QUERY_TIMEOUT_SECONDS = 2.0
MAX_IDLE = 8
# By which a process ends itself; the others come from people, and from a machine without memory.
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}
# So often Chroma may fail or crash while it is used; while it opens the folder, once is enough.
SIGNS_OF_DAMAGE = 3


class ChromaFailed(Exception):
    """Chroma answered with an error."""


class ChromaDamaged(ChromaFailed):
    """Its folder is the cause."""


class RemoteCollection:
    """Chroma's collection in that process: has its methods, which may be called by several threads at once.

    They raise ChromaFailed, OSError or EOFError if the process has ended, and ``query`` TimeoutError.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._idle: deque[Connection] = deque()

    def __getattr__(self, method: str) -> Any:
        return partial(self._call, method)

    def _call(self, method: str, **arguments: Any) -> Any:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            connection.send((method, arguments))
            if method == "query" and not connection.poll(QUERY_TIMEOUT_SECONDS):
                raise TimeoutError(f"Chroma did not answer within {QUERY_TIMEOUT_SECONDS:g} seconds.")
            state, result = connection.recv()
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        if state != "done":
            raise ChromaDamaged(result) if state == "damaged" else ChromaFailed(result)
        return result

    def _connect(self) -> Connection:
        ours, other = socket.socketpair()
        with other:
            socket.send_fds(self._control, [b" "], [other.fileno()])
        return Connection(ours.detach())


class ChromaProcess:
    """Runs ``chroma_server.py`` for the collection of a folder, or of the server at ``url``."""

    def __init__(self, folder: Path, url: str | None, headers: dict[str, str] | None, collection: str) -> None:
        self._folder = None if url else folder
        self._order = {"folder": None if url else str(folder), "url": url, "headers": headers, "collection": collection}
        self._last: Process | None = None
        self._control: socket.socket | None = None
        self._is_opening = False
        self._signs = 0
        # Whether the folder was put aside, and the new one isn't filled yet.
        self.is_damaged = False
        self.process: SupervisedProcess[RemoteCollection] = SupervisedProcess(
            "The Chroma process", self._launch, self._ready
        )

    def note_failure(self, error: ChromaFailed) -> None:
        """Restart Chroma if its folder, or its collection on a server, may be the cause."""
        self._signs += isinstance(error, ChromaDamaged)
        if isinstance(error, ChromaDamaged) or self._folder is None:
            self.process.kill()

    def close(self) -> None:
        """Stop the process permanently."""
        self.process.close()
        if self._control is not None:
            self._control.close()

    def _launch(self) -> Process:
        if self._last is not None and self._last.returncode in CRASHES:
            self._signs += SIGNS_OF_DAMAGE if self._is_opening else 1
        if self._signs >= SIGNS_OF_DAMAGE:
            self._put_aside()
        if self._control is not None:
            self._control.close()
        self._control, other = socket.socketpair()
        with other:
            self._last = subprocess.Popen(
                [sys.executable, "-m", "rag_assistant.retrieval.indexes.chroma_server"],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=plain_environment(),
                text=True,
            )
        self._control.sendall(json.dumps(self._order).encode() + b"\n")
        return self._last

    def _put_aside(self) -> None:
        self._signs = 0
        if self._folder is None or not self._folder.exists():
            return
        self.is_damaged = True
        aside = self._folder.with_name(self._folder.name + "-broken")
        log.warning("The vector index in %s is damaged. It is put aside (%s) and rebuilt.", self._folder, aside.name)
        shutil.rmtree(aside, ignore_errors=True)
        self._folder.rename(aside)

    def _ready(self, process: Process) -> RemoteCollection | None:
        assert self._control is not None  # noqa: S101 - it was opened at the launch, which the type checker cannot know
        self._is_opening = False
        with self._control.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                state, _, detail = line.strip().partition(" ")
                match state:
                    case "held":
                        log.warning("%s is in use by process %s; waiting for its end.", self._folder, detail)
                    case "opening":
                        self._is_opening = True
                    case "damaged":
                        log.warning("Chroma cannot open %s: %s", self._folder, detail)
                        self._signs = SIGNS_OF_DAMAGE
                    case "failed":
                        raise RuntimeError(detail)
                    case "ready":
                        self._is_opening = False
                        return RemoteCollection(self._control)
        process.wait()
        return None
