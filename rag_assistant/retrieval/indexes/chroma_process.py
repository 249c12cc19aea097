"""Chroma in a process of our own: started, asked, and started without its folder if that is damaged.

The process is given one end of a pipe as its input. Through it come what to open, then one end of a new pipe for each
request. So nobody else can reach it, and it ends with the other end of its input.
"""

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from threading import Thread
from typing import Any

from rag_assistant.runtime.parent import end_with_parent
from rag_assistant.runtime.supervised_process import Process, SupervisedProcess, plain_environment

log = logging.getLogger(__name__)

# How many vectors a search examines. Of the 100 nearest of 100,000, Chroma's default of 100 finds .83, this .97; more
# vectors need more (bench/README.md).
EF_SEARCH = 500
QUERY_TIMEOUT_SECONDS = 2.0
# By which a process ends itself; the others come from people, and from a machine without memory.
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}
# After so many errors and crashes, Chroma's folder is taken to be the cause.
SIGNS_OF_DAMAGE = 3
# Errors with another cause: another process has locked the database, or the disk has less room than this.
SQLITE_BUSY, BYTES_NEEDED = "(code: 5)", 1 << 20

Request = Callable[..., Any]


class ChromaFailed(Exception):
    """Chroma answered with an error."""


def request(control: Connection, method: str, **arguments: Any) -> Any:
    """Call a method of Chroma's collection in its process; several threads may at once.

    Raises ChromaFailed, OSError or EOFError if the process has ended, and, if it is a ``query``, TimeoutError.
    """
    ours, other = Pipe()
    with ours:
        with other:
            send_handle(control, other.fileno(), None)
        ours.send((method, arguments))
        if method == "query" and not ours.poll(QUERY_TIMEOUT_SECONDS):
            raise TimeoutError(f"Chroma did not answer within {QUERY_TIMEOUT_SECONDS:g} seconds.")
        result, problem = ours.recv()
    if problem is not None:
        raise ChromaFailed(problem)
    return result


class ChromaProcess:
    """Runs Chroma for the collection of a folder, or of the server at ``url``. Its service is ``request``."""

    def __init__(self, folder: Path, url: str | None, headers: dict[str, str] | None, collection: str) -> None:
        self._folder = folder
        self._url = url
        self._order = str(folder), url, headers, collection
        self._last: Process | None = None
        self._signs = 0
        # Whether the folder was put aside, and the new one isn't filled yet.
        self.is_damaged = False
        self.process = SupervisedProcess("The Chroma process", self._launch, self._ready)

    def note(self, error: ChromaFailed) -> None:
        """Count an error that the folder may have caused, or the collection on a server. The third restarts Chroma."""
        has_room = shutil.disk_usage(self._folder.parent).free > BYTES_NEEDED
        self._signs += self._url is not None or (has_room and SQLITE_BUSY not in str(error))
        if self._signs >= SIGNS_OF_DAMAGE:
            self.process.kill()

    def _launch(self) -> Process:
        with self._folder.with_name(f"{self._folder.name}.lock").open("a+") as lock:
            try:
                # The process inherits it: two on one folder destroy it.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                lock.seek(0)
                raise ChromaFailed(f"{self._folder} is in use by process {lock.read()}.") from error
            self._signs += self._last is not None and self._last.returncode in CRASHES
            if self._signs >= SIGNS_OF_DAMAGE:
                self._put_aside()
            self._control, other = Pipe()
            with other:
                self._last = subprocess.Popen(
                    [sys.executable, "-m", "rag_assistant.retrieval.indexes.chroma_process"],
                    stdin=other.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=plain_environment(),
                    pass_fds=[lock.fileno()],
                    text=True,
                )
            lock.truncate(0)
            lock.write(str(self._last.pid))
        self._control.send(self._order)
        return self._last

    def _put_aside(self) -> None:
        self._signs = 0
        if self._url is None and self._folder.exists():
            self.is_damaged = True
            aside = self._folder.with_name(f"{self._folder.name}-broken")
            log.warning("The vector index %s is damaged. It is put aside (%s) and rebuilt.", self._folder, aside.name)
            shutil.rmtree(aside, ignore_errors=True)
            self._folder.rename(aside)

    def _ready(self, _: Process) -> Request:
        problem = self._control.recv()
        if problem is not None:
            error = ChromaFailed(problem)
            self.note(error)
            raise error
        return partial(request, self._control)


def main() -> None:
    """Open a collection, tell what keeps it from being opened, if anything, and serve it until the input ends."""
    control = Connection(0)
    folder, url, headers, name = control.recv()
    import chromadb  # If that fails, it is no sign of a damaged folder: this process ends.
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    try:
        if url is None:
            client = chromadb.PersistentClient(folder, settings)
        else:
            host, _, port = url.split("//", 1)[1].rstrip("/").partition(":")
            secure = url.startswith("https")
            client = chromadb.HttpClient(host, int(port or (443 if secure else 80)), secure, headers, settings)
        collection = collection_of(client, name)
    except BaseException as error:  # noqa: BLE001 - a panic of Chroma is no Exception
        control.send(str(error))
        return
    control.send(None)
    with suppress(EOFError):
        while True:
            Thread(target=answer, args=(collection, Connection(recv_handle(control))), daemon=True).start()
    os._exit(0)


def collection_of(client: Any, name: str) -> Any:
    """Return a collection. It embeds nothing: vectors only come from SQL."""
    configuration = {"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}}
    return client.get_or_create_collection(name, embedding_function=None, configuration=configuration)


def answer(collection: Any, connection: Connection) -> None:
    """Call the method that is requested, and send its result, and what went wrong, if anything."""
    result = problem = None
    with connection, suppress(EOFError, OSError):
        method, arguments = connection.recv()
        try:
            result = getattr(collection, method)(**arguments)
        except BaseException as error:  # noqa: BLE001 - a panic of Chroma is no Exception
            problem = f"{type(error).__name__}: {error}"
        connection.send((result, problem))


if __name__ == "__main__":
    end_with_parent()
    main()
