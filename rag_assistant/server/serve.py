"""Run the server: waitress, one process, with a thread for each concurrent answer.

A request gets a thread once its head and body have arrived, so a slow or silent client occupies none.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from waitress.adjustments import Adjustments
from werkzeug.wsgi import ClosingIterator

from rag_assistant.records.errors import AssistantError
from rag_assistant.runtime.data_dir import drop_unused, lock_data_dir, open_data_dir, open_to_others
from rag_assistant.runtime.telemetry.steps import ids
from rag_assistant.server.connections import Server, Threads
from rag_assistant.settings.live import open_settings
from rag_assistant.settings.package_files import home
from rag_assistant.settings.schema import Settings

if TYPE_CHECKING:
    from rag_assistant.services import Services
    from rag_assistant.web.api.events import Readers

# How long a thread that computes lets another one wait, each time that one needs the interpreter.
SWITCH_INTERVAL_SECONDS = 0.001
LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TextLines(logging.Formatter):
    """Formats log lines for people, with ids in brackets at the end."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without a traceback."""
        fields = ", ".join(f"{name} {value}" for name, value in ids().items())
        return super().formatMessage(record) + (f" [{fields}]" if fields else "")


class JsonLines(logging.Formatter):
    """Formats log records as JSON, with the figures in the record's ``fields``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback is in ``exception``."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= ids() | getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def say_known_failures(record: logging.LogRecord) -> bool:
    """Put our own errors, which say all there is to know, in place of their tracebacks."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, AssistantError):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error}", None, None
    return True


def configure_logging(level: str, line_format: Literal["text", "json"]) -> None:
    """Log our own messages, and only warnings of others."""
    handler = logging.StreamHandler()
    handler.addFilter(say_known_failures)
    handler.setFormatter(JsonLines() if line_format == "json" else TextLines(LINE))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("rag_assistant").setLevel(level)


log = logging.getLogger(__name__)

# Beside those of answers: pages, uploads, and refusals of excess requests.
SPARE_THREADS = 64
MAX_CONNECTIONS = 4096
# Open files besides clients and models: the database, the index, the log, documents.
SPARE_DESCRIPTORS = 100
# An idle connection is closed after this time; one with a running request never is.
IDLE_SECONDS = 30
CLEANUP_INTERVAL_SECONDS = 5
# A client that reads nothing for this long is considered gone.
SEND_TIMEOUT_SECONDS = 60
MAX_HEAD_BYTES = 65_536
# Of a request being received, and of a response not yet read: the rest is on disk, or waits.
MAX_BODY_BYTES_IN_MEMORY = 65_536
MAX_UNREAD_BYTES = 262_144
# How long the process of a killed server may take to exit on a busy machine.
LOCK_TIMEOUT_SECONDS = 2.0
# How long clients have to read the end of their answers.
READERS_TIMEOUT_SECONDS = 5.0
POLL_INTERVAL_SECONDS = 0.05


# From glibc's malloc.h. Each arena keeps its peak memory: after embedding 900 chunks, a server had 680 MB with glibc's
# eight for each core, and 345 with two.
M_ARENA_MAX, MAX_ARENAS = -8, 2


def serve() -> None:
    """Run the server until it is ended. Exits with a sentence on an invalid setting, or a folder or port in use."""
    ending = Ending()
    limit_arenas()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        live = open_settings()
        settings = live.current
        data_dir = open_data_dir(home() / settings.data_dir)
        # The services lock it again, permanently. A killed server may still be exiting.
        lock_data_dir(data_dir, LOCK_TIMEOUT_SECONDS).close()
        configure_logging(settings.log_level, settings.log_format)
        os.umask(0o077)
        listener = listen(settings, data_dir)
        host, port = listener.getsockname()[:2]
        print(f"Settings: {live.path}\nData: {data_dir}")
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        print(f"Starting on {address}", flush=True)
        # Loading this takes most of a start, and invalid settings are reported first.
        from rag_assistant.web import create_app

        app = create_app()
        services: Services = app.extensions["assistant"]
        services.start()
        for sentence in open_to_others(data_dir, *live.private_files):
            log.warning("%s", sentence)
        # A full collection stops all answers: for 40 ms instead of 140 without what was loaded before.
        gc.freeze()
        gc.enable()
    except AssistantError as error:
        sys.exit(f"Cannot start. {error}")
    served = logged(app) if settings.access_log else app
    threads = Threads(settings.max_running_answers + SPARE_THREADS)
    server = Server(served, {}, True, listener, threads, Adjustments(**options(settings)), bind_socket=False)
    ending.in_order = lambda: finish(services, app.extensions["readers"])
    print(f"Ready: open {address}", flush=True)
    server.run()
    leave(services)


def limit_arenas() -> None:
    """Limit the number of glibc's arenas, unless MALLOC_ARENA_MAX is set."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, MAX_ARENAS)


def options(settings: Settings) -> dict[str, Any]:
    """Return what differs from waitress's defaults. Trusted proxies are decided in web/middleware.py."""
    logging.getLogger("waitress").setLevel(logging.ERROR)  # A client that leaves or a growing queue is no news.
    return {
        "connection_limit": max_connections(settings),
        "backlog": MAX_CONNECTIONS,
        "asyncore_use_poll": True,
        "channel_timeout": IDLE_SECONDS,
        "cleanup_interval": CLEANUP_INTERVAL_SECONDS,
        "max_request_header_size": MAX_HEAD_BYTES,
        # Each route has its own, lower limit; the page sends several documents at once.
        "max_request_body_size": 1_000_000_000,
        "inbuf_overflow": MAX_BODY_BYTES_IN_MEMORY,
        "outbuf_overflow": 2 * MAX_UNREAD_BYTES,
        "outbuf_high_watermark": MAX_UNREAD_BYTES,
        "log_socket_errors": False,
        "clear_untrusted_proxy_headers": False,
        "ident": None,
    }


def listen(settings: Settings, data_dir: Path) -> socket.socket:
    """Return a listening socket; exit with a sentence if the port is in use. A new data folder goes."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=MAX_CONNECTIONS)
    except OSError as error:
        drop_unused(data_dir)
        sys.exit(
            f"Cannot start. Port {settings.port} of {settings.host} cannot be used ({os.strerror(error.errno or 0)}). "
            "Choose another with --port or the variable PORT, such as PORT=8001."
        )
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SEND_TIMEOUT_SECONDS * 1000)
    return listener


def max_connections(settings: Settings) -> int:
    """Return the maximum number of clients: each may need a second descriptor, for a body or a model."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    left = sys.maxsize if hard == resource.RLIM_INFINITY else (hard - SPARE_DESCRIPTORS) // 2
    return max(settings.max_running_answers + SPARE_THREADS, min(MAX_CONNECTIONS, left))


class Ending:
    """Ends the server on SIGTERM or Ctrl-C: at once during the start, ``in_order`` afterwards.

    First /readyz fails, so that requests go elsewhere, then questions are refused, then running answers may finish.
    """

    def __init__(self) -> None:
        self.in_order: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if self.in_order is None or self._ended.is_set():
            raise SystemExit(0 if self.in_order else 128 + number)
        if self._thread is None:  # A repeated signal is ignored.
            self._thread = threading.Thread(target=self._run, args=(self.in_order,), name="end", daemon=True)
            self._thread.start()

    def _run(self, end: Callable[[], None]) -> None:
        try:
            end()
        except Exception:
            log.exception("The server did not shut down cleanly")
        self._ended.set()
        os.kill(os.getpid(), signal.SIGTERM)  # This ends the serving thread.


def finish(services: Services, readers: Readers) -> None:
    """Fail /readyz, refuse questions, let running answers finish, and interrupt the rest."""
    settings = services.settings.current
    services.is_ending = True
    log.info("Ending; answers that are being written: %d", services.assistant.running[0])
    time.sleep(settings.drain_seconds)
    readers.close()
    wait_until(lambda: services.assistant.running[0] == 0, settings.last_answers_seconds)
    services.assistant.close()
    wait_until(lambda: readers.waiting == 0, READERS_TIMEOUT_SECONDS)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition, up to a limit."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(POLL_INTERVAL_SECONDS)


def leave(services: Services) -> None:
    """Release claims, merge SQLite's log into its file, and exit.

    Whoever copies only the database file would miss a log beside it. The interpreter's own shutdown is skipped: a
    thread that is embedding or loading would return from C++ into a finalized interpreter, which aborts the process.
    """
    status = 1
    with suppress(BaseException):
        try:
            services.assistant.close()
            services.membership.leave()
            services.database.checkpoint()
            status = 0
            log.info("Ended")
        except Exception:
            log.exception("The server did not shut down cleanly")
        logging.shutdown()
    os._exit(status)


access_log = logging.getLogger("rag_assistant.access")


def logged(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return an application that logs its requests. The query string, which holds searches, is left out."""
    access_log.setLevel(logging.INFO)  # It is enabled explicitly, so it appears at every log_level.

    def call(wsgi: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        began = time.monotonic()
        fields = {"method": wsgi["REQUEST_METHOD"], "path": wsgi["REQUEST_URI"].partition("?")[0]}
        sent = 0

        def start(status: str, *more: Any) -> Any:
            fields["status"] = int(status.partition(" ")[0])
            return start_response(status, *more)

        def count(pieces: Iterable[bytes]) -> Iterator[bytes]:
            nonlocal sent
            for piece in pieces:
                sent += len(piece)
                yield piece

        def write() -> None:
            fields.update(bytes=sent, milliseconds=int((time.monotonic() - began) * 1000))
            sentence = "%(method)s %(path)s %(status)d, %(bytes)d bytes, %(milliseconds)d ms"
            access_log.info(sentence, fields, extra={"fields": fields})

        response = app(wsgi, start)
        close = getattr(response, "close", None)
        return ClosingIterator(count(response), [close, write] if close else [write])

    return call
