"""Servers that start at once, forked from a process that has loaded everything.

Most of a start is importing modules. Forked servers run the same ``app.py`` as ``python app.py``; tests of the start
itself run that command (tests/test_server.py), with the real embedding model; here it is a fast one, which takes half
as long for a question. With KILL_AT in its environment, a server kills itself at that step; LEASE_SECONDS and
REQUEST_SECONDS shorten leases and the timeout of silent clients, MAX_DESCRIPTORS limits open files, and with
EXACT_INDEX it starts no Chroma, which would take longer than most tests of a page.

As a program this module is the forking process, one for all testing processes.
"""

import contextlib
import fcntl
import gc
import json
import os
import re
import resource
import runpy
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from flask import Flask

from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.indexes import chroma
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.runtime.parent import end_with_parent
from rag_assistant.services import Services
from rag_assistant.storage import processes as leases
from rag_assistant.web import create_app
from tests.testkit.compiled_once import compile_once
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.kill_at import kill_at
from tests.testkit.loopback_only import loopback_only
from tests.testkit.server_process import PROJECT, Launched
from tests.testkit.stub_model import StubModel

# Imported by the program itself; the warm-up imports what an application needs.
LOADED_BY_THE_PROGRAM = ("psycopg", "rag_assistant.cli", "rag_assistant.server.serve")

# The socket of the forking process.
SOCKET = "socket"


class ForkedServer:
    """A forked server, watched from the testing process, which isn't its parent."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)
        self._ended = False

    def poll(self) -> int | None:
        """Return a number once the process has ended; only its parent would know the status."""
        if not self._ended and select.select([self._handle], [], [], 0)[0]:
            self._end()
        return 1 if self._ended else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process. Raises TimeoutExpired."""
        if not self._ended:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked server", timeout or 0.0)
            self._end()
        return 1

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """Send a signal, if the process still exists."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _end(self) -> None:
        os.close(self._handle)
        self._ended = True


class ServerFork:
    """Connects to the forking process, and keeps a prepared data folder as a template.

    The first user of a folder starts the process, and it ends when the last one has closed.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._filled: Path | None = None
        self._forker: subprocess.Popen[bytes] | None = None
        connection = socket.socket(socket.AF_UNIX)
        with alone(folder):
            try:
                connection.connect(str(folder / SOCKET))
            except OSError:
                self._forker = start_forker(folder)
                connection.connect(str(folder / SOCKET))
        with connection:
            self._orders, self._answers = connection.makefile("wb"), connection.makefile("rb")

    def launch(self, environment: dict[str, str], log: Path, *command: str) -> Launched:
        """Fork a server, or a command. A server's missing folder is created with a migrated database and the guide."""
        if self._filled is None and (warm := self._answers.readline()):
            self._filled = Path(os.fsdecode(warm.rstrip(b"\n")))
        data_dir = Path(environment["DATA_DIR"])
        if self._filled is not None and not (command or data_dir.exists() or "DATABASE_URL" in environment):
            shutil.copytree(self._filled, data_dir)
        order = {"environment": environment, "log": str(log), "command": command}
        self._orders.write(json.dumps(order).encode() + b"\n")
        self._orders.flush()
        return ForkedServer(int(self._answers.readline()))

    def close(self) -> None:
        """Need no more servers; whoever started them stops them. Whoever started the process waits for its end."""
        self._orders.close()
        self._answers.close()
        if self._forker is not None:
            self._forker.wait()


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock out others who start or end the forking process."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start_forker(folder: Path) -> subprocess.Popen[bytes]:
    """Start the forking process; it listens at once, and answers when everything is loaded."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen()
        return subprocess.Popen(
            [sys.executable, "-m", __spec__.name, str(folder), str(listener.fileno())],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
        )


def main(folder: Path, listener: socket.socket) -> None:
    """Load everything and fill a folder, then serve."""
    for name in LOADED_BY_THE_PROGRAM:
        import_module(name)
    gc.disable()
    minilm.MiniLM = WordHashEmbedder  # type: ignore[assignment, misc]
    loopback_only()
    own = Path(tempfile.mkdtemp(dir=folder))
    compile_once(own)
    filled = warm_up(own)
    gc.collect()
    gc.enable()
    gc.freeze()  # A full garbage collection would copy all memory into each server.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for the servers here, so the system reaps them.
    fork_servers(listener, folder, os.fsencode(filled) + b"\n")


def fork_servers(listener: socket.socket, folder: Path, greeting: bytes) -> None:
    """Fork a server for each line of a connection and answer with its id, until the last connection is closed."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        needed = True
        while needed:
            for key, _ in waiting.select():
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    connection.sendall(greeting)
                    waiting.register(connection, selectors.EVENT_READ, connection)
                elif not take_order(key.data, waiting):
                    waiting.unregister(key.data)
                    key.data.close()
                    needed = is_needed(waiting, folder)


def take_order(connection: socket.socket, waiting: selectors.BaseSelector) -> bool:
    """Fork a server for the next line; return False if the connection was closed."""
    with connection.makefile("rb") as lines:
        line = lines.readline()
    if line:
        order = json.loads(line)
        if os.fork() == 0:
            os.setsid()  # Whoever knows its id may kill it at once, with its children.
            connection.sendall(b"%d\n" % os.getpid())
            for key in list(waiting.get_map().values()):
                os.close(key.fd)
            become_server(order["environment"], order["log"], order["command"])
    return bool(line)


def is_needed(waiting: selectors.BaseSelector, folder: Path) -> bool:
    """Return whether somebody is connected or about to be; if not, nobody will connect later."""
    with alone(folder):
        found = len(waiting.get_map()) > 1 or bool(waiting.select(0))
        if not found:
            (folder / SOCKET).unlink()
    return found


def warm_up(folder: Path) -> Path:
    """Run once what every server does for its first page and question; return a folder with the guide."""
    with run_app(folder / "first") as app:
        services: Services = app.extensions["assistant"]
        services.start()
        while services.processing.busy:
            time.sleep(0.02)
    shutil.copytree(folder / "first", folder / "used")
    with run_app(folder / "used") as app:
        client = app.test_client()
        for question in ("What is a window?", "And then?"):
            client.post("/api/query/stream?html=1", json={"question": question}).get_data()
        for path in ("/", "/conversations/1", "/documents", "/settings"):
            client.get(path, headers={"Accept": "text/html"})
        addresses = set(re.findall(r'/static/v-[^"]+', client.get("/conversations/1").text))
        for address in addresses:
            client.get(address, headers={"Accept-Encoding": "gzip, deflate, br, zstd"})
    (folder / "first" / "reserve").unlink()  # Each server would copy 16 MB.
    return folder / "first"


@contextlib.contextmanager
def run_app(data: Path) -> Iterator[Flask]:
    """Run an application in this process, with a model, and end its threads."""
    stub = StubModel()
    own = {"DATA_DIR": str(data), "SETTINGS_FILE": str(data.with_suffix(".json"))}
    app = create_app(own | {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model"})
    yield app
    app.extensions["assistant"].close()
    stub.close()


def become_server(environment: dict[str, str], log: str, command: list[str]) -> None:
    """Continue like ``python app.py``, with a command if there is one, in this environment, and exit with it."""
    end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["app.py", *command]
    if step := os.environ.pop("KILL_AT", None):
        kill_at(step)
    if seconds := os.environ.pop("LEASE_SECONDS", None):
        leases.LEASE_SECONDS = float(seconds)
    if seconds := os.environ.pop("REQUEST_SECONDS", None):
        serve: Any = import_module("rag_assistant.server.serve")
        serve.IDLE_SECONDS = serve.CLEANUP_INTERVAL_SECONDS = int(seconds)
    if delay := os.environ.pop("INDEX_DELAY", None):
        chroma.START_DELAY_SECONDS = float(delay)
    if os.environ.pop("EXACT_INDEX", None):
        ChromaIndex.start = lambda _: None  # type: ignore[method-assign, assignment]
    if limit := os.environ.pop("MAX_DESCRIPTORS", None):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(limit), int(limit)))
    status = 1
    try:
        runpy.run_path("app.py", run_name="__main__")
        status = 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(ended.code + "\n")
        status = ended.code if isinstance(ended.code, int) else status
    except BaseException:  # noqa: BLE001 - it is told, as the interpreter would, and ends the process
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
