"""A real server for tests: ``python app.py`` in a process of its own, which can be killed and restarted."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

PROJECT = Path(__file__).resolve().parents[2]


class Launched(Protocol):
    """A started process, as tests use it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Return ``None`` as long as it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""

    def terminate(self) -> None:
        """Ask it to end."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal."""


# A thousand concurrent answers on a busy machine are slow, but don't hang.
STREAM_TIMEOUT_SECONDS = 120
# Linux, ip_local_port_range.
MIN_EPHEMERAL_PORT = 32_768
# Below those, per testing process: a restarted server finds its port free.
FIRST_PORT, PORTS_OF_A_PROCESS = 20_000, 500

Launch = Callable[[dict[str, str], Path], Launched]


def run_command(environment: dict[str, str], log: Path, project: Path = PROJECT) -> Launched:
    """Start the server as a user does: ``python app.py``, in a checkout."""
    with log.open("ab") as written:
        return subprocess.Popen(
            [sys.executable, "app.py"], cwd=project, env=environment, stdout=written, stderr=written,
            start_new_session=True,
        )  # fmt: skip


class ServerEnded(AssertionError):
    """A server ended before it was ready; the text is its log."""


class ServerProcess:
    """Starts, kills and queries a server. It keeps its port and its data across restarts."""

    def __init__(self, folder: Path, launch: Launch = run_command, **environment: str) -> None:
        self.port = int(environment.get("PORT") or free_port())
        own = {"PORT": str(self.port), "DATA_DIR": str(folder / "data"), "SETTINGS_FILE": str(folder / "settings.json")}
        self.environment = dict(os.environ) | own | environment
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.process: Launched | None = None
        self._launch = launch
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self, path: str = "/readyz") -> float:
        """Start the server and return how many seconds it took until ``path`` returned 200."""
        began = time.monotonic()
        self.launch()
        self.wait_until_ready(path)
        return time.monotonic() - began

    def launch(self) -> None:
        """Start the server without waiting for it."""
        self.process = self._launch(self.environment, self.log)

    def wait_until_ready(self, path: str = "/readyz") -> None:
        """Wait until ``path`` returns 200; raise ``ServerEnded`` if the server ends before."""
        assert self.process is not None
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url + path, timeout=5):
                return
            if self.process.poll() is not None:
                raise ServerEnded(self.log.read_text())
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill the server and everything it started."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):  # It may have ended itself.
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._wait_for_port()

    def _wait_for_port(self) -> None:
        """Wait until the last of the killed processes has released the port."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", self.port))
                return
            time.sleep(0.01)

    def terminate(self) -> float:
        """Ask the server to end, and return how many seconds it took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(40)
        return time.monotonic() - began

    def upload(self, name: str, text: str) -> int:
        """Send a document and return its id."""
        body = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{text}\r\n--x--\r\n'
        status, document = self.send("POST", "/api/documents", body.encode(), "multipart/form-data; boundary=x")
        assert status == 202, document
        return int(document["document_id"])

    def wait_for_documents(self) -> None:
        """Wait until every document has been processed."""
        end = time.monotonic() + 60
        while any(
            one["state"] not in ("ready", "failed") for one in self.call("GET", "/api/documents")[1]["documents"]
        ):
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)

    def wait_for_words(self, path: str, words: str) -> None:
        """Wait until a page contains some words."""
        end = time.monotonic() + 60
        request = urllib.request.Request(self.url + path, headers={"Accept": "text/html"})
        while True:
            with urllib.request.urlopen(request, timeout=30) as response:
                if words in response.read().decode():
                    return
            assert time.monotonic() < end, f"{path} never said {words!r}"
            time.sleep(0.05)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON of a response."""
        return self.send(method, path, None if body is None else json.dumps(body).encode(), "application/json")

    def send(self, method: str, path: str, data: bytes | None, media_type: str) -> tuple[int, Any]:
        """Return status and JSON of the response to any kind of body."""
        request = urllib.request.Request(self.url + path, data, {"Content-Type": media_type}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                content = response.read()
                return response.status, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def stream(self, question: str, key: str | None = None, **fields: Any) -> Stream:
        """Ask over the streaming API, with an Idempotency-Key if given, and return the open stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=STREAM_TIMEOUT_SECONDS)
        body = json.dumps({"question": question} | fields)
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        connection.request("POST", "/api/query/stream", body, headers)
        return Stream(connection)

    def follow(self, turn_id: int, after: int | None) -> Stream:
        """Follow a turn from a position."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=STREAM_TIMEOUT_SECONDS)
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        connection.request("GET", f"/api/turns/{turn_id}/stream", headers=headers)
        return Stream(connection)


@cache
def _own_ports() -> Iterator[int]:
    """Yield ports that no other testing process uses: whoever listens at the first of them reserves all."""
    for first in range(FIRST_PORT, MIN_EPHEMERAL_PORT - PORTS_OF_A_PROCESS, PORTS_OF_A_PROCESS):
        holder = socket.socket()
        with contextlib.suppress(OSError):
            holder.bind(("127.0.0.1", first))
            holder.listen()
            atexit.register(holder.close)
            return itertools.cycle(range(first + 1, first + PORTS_OF_A_PROCESS))
        holder.close()
    raise RuntimeError("Too many processes test on this machine.")


def free_port() -> int:
    """Return a free port, another one each time.

    The system assigns none of these by itself, so that it stays free between two starts of a server.
    """
    while True:
        port = next(_own_ports())
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Stream:
    """An open stream of events, and what was received."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self.text = ""
        self.position: int | None = None
        accepted = self._response.getheader("X-Turn-Id")
        self.turn_id = None if accepted is None else int(accepted)
        self.last: tuple[str, dict[str, Any]] | None = None

    def read(self, until_length: int | None = None) -> Stream:
        """Read until the stream ends or breaks, or the text has ``until_length`` characters."""
        block: dict[str, str] = {}
        with contextlib.suppress(OSError, http.client.HTTPException):
            while line := self._response.readline():
                if line == b"\n":
                    self._take(block)
                    block = {}
                    if until_length is not None and len(self.text) >= until_length:
                        return self
                elif not line.startswith(b":"):
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    block[name] = value
        self.close()
        return self

    def _take(self, block: dict[str, str]) -> None:
        if not block:
            return
        data = json.loads(block["data"])
        self.turn_id = data.get("turn_id", self.turn_id)
        if "id" in block:
            self.position = int(block["id"])
        if block["event"] == "token":
            self.text += data["text"]
        self.last = (block["event"], data)

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._connection.close()
