"""gunicorn's worker with threads, in which a request gets a thread when it is there, and not while it is on its way.

A client that sends half a request, or none, waits in the loop that accepts connections, for some seconds, and makes
room when there are many. A long body, such as an uploaded file, is read in a thread, of which there are few for that,
and at a least pace. Requests that wait for an answer have threads of their own, so that a thousand of them keep no
other request waiting. Whoever is signed in and sends many at once waits behind themselves (lines.py). When the server
ends, answers that still run get a moment, and then an end that says so.
"""

from __future__ import annotations

import contextlib
import re
import select
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn.http.errors import LimitRequestLine
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from rag_assistant.runtime.courtesy import note_request
from rag_assistant.runtime.memory import give_back_soon
from rag_assistant.runtime.request_context import BEGUN
from rag_assistant.server.lines import Lines, who_sends
from rag_assistant.server.loading import Loading

MAX_WAIT_SECONDS = 10.0
BYTES_AT_ONCE = 65536
MAX_HEAD_BYTES = 65536
# What is read before a thread takes the request; the longest question has less.
MAX_SMALL_BODY_BYTES = 65536
MAX_LARGE_AT_ONCE = 16
# More than one needs, since a reader that is slow holds its thread.
MAX_OTHERS_AT_ONCE = 128
# Whatever else has arrived gets its thread before the next few questions get theirs.
MAX_QUESTIONS_AT_ONCE = 8
# A large body: so long until its pace is looked at, and what it must come to then.
GRACE_SECONDS = 30.0
MIN_BYTES_PER_SECOND = 10_000
# Who does not read for so long is taken for gone.
SEND_TIMEOUT_SECONDS = 60
HEAD_END = b"\r\n\r\n"
HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def _refusal(status: str, kind: str, message: str, more: str = "") -> bytes:
    """Return a whole response in the shape of the API's errors."""
    body = f'{{"error":{{"type":"{kind}","message":"{message}"}}}}'
    head = f"HTTP/1.1 {status}\r\nConnection: close\r\n{more}Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


TOO_MANY = _refusal(
    "429 Too Many Requests",
    "LimitReached",
    "Too many requests of yours are under way. Try again in a second.",
    "Retry-After: 1\r\n",
)
NO_TLS = _refusal("400 Bad Request", "BadRequest", "This server does not speak TLS. Write http://, not https://.")
TLS_HANDSHAKE = 0x16  # The first byte that a client of TLS sends (RFC 8446, 5.1), and of no request.
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
# Requests that may last as long as an answer does.
WAITS_FOR_ANSWER = re.compile(rb"(?:POST \S*/(?:query|ask|compact|completions|responses|mcp)|[A-Z]+ \S*/stream)[? ]")
IN_PARTS = re.compile(rb"\r\n(?:transfer-encoding|expect):", re.IGNORECASE)


class PacedUnreader(SocketUnreader):
    """Reads what of a request is not there yet, as long as it comes at a pace."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._began = 0.0
        self._bytes = 0

    def begin(self, received: bytes) -> None:
        """Begin a request, of which this has been received."""
        self._began, self._bytes = time.monotonic(), 0
        self.unread(received)

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next piece. Raises BodyTooSlow."""
        left = self._began + GRACE_SECONDS + self._bytes / MIN_BYTES_PER_SECOND - time.monotonic()
        waiting = select.poll()
        waiting.register(self.sock, select.POLLIN)
        if left <= 0 or not waiting.poll(left * 1000):
            # The process that watches over this one has this class, too, and does not need Werkzeug.
            from rag_assistant.server.application import BodyTooSlow

            raise BodyTooSlow
        piece: bytes = super().chunk(size_hint)  # type: ignore[call-arg] # the stubs are older
        self._bytes += len(piece)
        return piece


class Connection(TConn):
    """A connection with what has been received of its next request."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.received = bytearray()
        self.large = False
        self.waits_for_answer = False
        self.who: bytes | None = None

    def init(self) -> None:
        """Hand to the parser what has been received; a thread goes on from there."""
        super().init()
        parser: Any = self.parser
        if not isinstance(parser.unreader, PacedUnreader):
            parser.unreader = PacedUnreader(self.sock)
        parser.unreader.begin(bytes(self.received))
        self.received.clear()

    def is_whole(self) -> bool:
        """Tell whether a thread can take the request; ``large`` if its body is still to come then."""
        end = self.received.find(HEAD_END)
        if end < 0:
            return False
        head = bytes(self.received[: end + len(HEAD_END)])
        length = LENGTH.search(head)
        body_bytes = int(length[1]) if length else 0
        self.waits_for_answer = WAITS_FOR_ANSWER.match(head) is not None
        self.who = who_sends(head)
        self.large = IN_PARTS.search(head) is not None or body_bytes > MAX_SMALL_BODY_BYTES
        return self.large or len(self.received) >= len(head) + body_bytes


class Worker(ThreadWorker):
    """Accepts connections, collects requests and hands them to threads."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # Each is looked up several times for a request, and does not change any more.
        vars(self.cfg).update({name: setting.get() for name, setting in self.cfg.settings.items()})
        self._answers = self._answer_threads()
        self._at_work = 0
        self._questions: deque[Connection] = deque()
        self._lines = Lines()
        self._handled = threading.local()
        self._large = 0
        self._is_ending = False
        server: Any = self.app
        self.loading = Loading(server.base_path)
        self._waiting_large: deque[Connection] = deque()

    def accept(self, listener: Any) -> None:
        """Accept all who wait, and wait for their requests without a thread."""
        while True:
            try:
                client, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            self.nr_conns += 1
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_SECONDS, 0))
            if self.nr_conns >= self.worker_connections and self.pending_conns:
                self._drop(self.pending_conns[0])
            self._collect(Connection(self.cfg, client, address, listener.getsockname()))

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer what is no request that the application could read; an address too long as the API would."""
        if isinstance(exc, LimitRequestLine):
            message = f"The address is too long; the limit is {self.cfg.limit_request_line} bytes with its parameters."
            client.sendall(_refusal("414 URI Too Long", "RequestURITooLarge", message))
        else:
            super().handle_error(req, client, addr, exc)

    def on_client_socket_readable(self, conn: Any, client: Any) -> None:
        """Wait for the next request of a connection that was kept."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._collect(conn)

    def on_pending_socket_readable(self, conn: Any, client: Any) -> None:
        """Take what has arrived of a request; once it is whole, a thread takes it."""
        try:
            piece = client.recv(BYTES_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._drop(conn)
            return
        conn.received += piece
        if conn.received[0] == TLS_HANDSHAKE:
            self._drop_with(conn, NO_TLS)
            return
        if not conn.is_whole():
            if len(conn.received) > MAX_HEAD_BYTES + MAX_SMALL_BODY_BYTES:
                self._drop_with(conn, HEAD_TOO_LARGE)
            return
        self.poller.unregister(client)
        self.pending_conns.remove(conn)
        conn.data_ready = True
        if conn.who is None:
            self._go_on(conn)
            return
        if self._lines.is_full(conn.who, conn.large):
            self._close_with(conn, TOO_MANY)
            return
        self._begin(self._lines.join(conn.who, conn, time.monotonic(), large=conn.large))

    def _begin(self, begun: list[Connection]) -> None:
        for conn in begun:
            self._go_on(conn)

    def _go_on(self, conn: Connection) -> None:
        if conn.large and self._large >= MAX_LARGE_AT_ONCE:
            self._waiting_large.append(conn)
            return
        self._hand_over(conn)

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return the threads for everything but answers."""
        return ThreadPoolExecutor(MAX_OTHERS_AT_ONCE, "request")

    def _answer_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.cfg.threads, "answer")

    def enqueue_req(self, conn: Any) -> None:
        """Give a request to a thread; one that waits for an answer gets its turn."""
        if conn.waits_for_answer:
            self._questions.append(conn)
        else:
            self._submit(self.tpool, conn)

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        """Do what is there to be done, and begin a few of the questions that wait."""
        now = time.monotonic()
        if (seconds := self._lines.seconds_to_look(now)) is not None:
            self._begin(self._lines.look(now))
            timeout = seconds if timeout is None else min(timeout, seconds)
        super().wait_for_and_dispatch_events(0.0 if self._questions else timeout)
        for _ in range(min(MAX_QUESTIONS_AT_ONCE, len(self._questions))):
            self._submit(self._answers, self._questions.popleft())

    def _submit(self, threads: ThreadPoolExecutor, conn: Connection) -> None:
        self._at_work += 1
        handled: Future[Any] = threads.submit(self._handle, conn)
        handled.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def _handle(self, conn: Connection) -> Any:
        self._handled.conn = conn
        note_request()
        return self.handle(conn)

    def load_wsgi(self) -> None:
        """Begin to load the application; it is there when the loop runs, or a little later."""
        self.loading.start(self.app.wsgi)
        self.wsgi = self._enter

    def _enter(self, wsgi: MutableMapping[str, Any], start_response: Any) -> Iterable[bytes]:
        """Let the application answer a request, and say when it has begun to."""
        conn: Connection = self._handled.conn
        if not conn.waits_for_answer or conn.who is None:
            return self.loading(wsgi, start_response)  # It is over soon.
        wsgi[BEGUN] = partial(self._say_begun, conn)
        response = self.loading(wsgi, start_response)
        self._say_begun(conn)
        return response

    def _say_begun(self, conn: Connection) -> None:
        self._defer(self._leave_line, conn)

    def _defer(self, job: Callable[..., None], *arguments: Any) -> None:
        """Let the loop do something soon."""
        with contextlib.suppress(OSError):  # At the end nobody listens any more.
            self.method_queue.defer(job, *arguments)

    def _leave_line(self, conn: Connection) -> None:
        self._begin(self._lines.leave(conn, time.monotonic()))

    def run(self) -> None:
        """Serve until the end."""
        super().run()
        self._answers.shutdown(wait=False)

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Go on with a connection whose request was answered; a large one makes room for the next."""
        self._leave_line(conn)
        if conn.large:
            conn.large = False
            self._large -= 1
            if self._waiting_large:
                self._hand_over(self._waiting_large.popleft())
        super().finish_request(conn, fs)
        self._at_work -= 1
        give_back_soon(partial(self._defer, self._end_threads))

    def _end_threads(self) -> None:
        """Let all threads end, if none is at work: each keeps what its busiest moment needed (docs/benchmarks.md)."""
        if self._at_work:
            return
        for threads in (self.tpool, self._answers):
            threads.shutdown(wait=False)
        self.tpool, self._answers = self.get_thread_pool(), self._answer_threads()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End gracefully: say that others are to be asked, then take no new connections, then end the last answers.

        Who tells it twice, as systemd and gunicorn's master do together, is heard once.
        """
        app = self.loading.app
        if app is None:
            super().handle_exit(sig, frame)
        elif not self._is_ending:
            self._is_ending = True
            end = partial(self._end, partial(super().handle_exit, sig, frame), app.extensions["assistant"])
            threading.Thread(target=end, name="end", daemon=True).start()

    @staticmethod
    def _end(close_entrance: Callable[[], None], services: Any) -> None:
        settings = services.settings.current
        services.is_ending = True
        time.sleep(settings.drain_seconds)
        close_entrance()
        time.sleep(settings.last_answers_seconds)
        services.assistant.close()

    def _hand_over(self, conn: Connection) -> None:
        self._large += conn.large
        self.enqueue_req(conn)

    def _collect(self, conn: Connection) -> None:
        """Wait for a request in the loop; who has waited longest stands first."""
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + MAX_WAIT_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _close_with(self, conn: Connection, answer: bytes) -> None:
        """Answer a request that no thread takes, and close its connection."""
        with contextlib.suppress(OSError):
            conn.sock.send(answer)
        conn.close()
        self.nr_conns -= 1

    def _drop_with(self, conn: Connection, answer: bytes) -> None:
        """Answer a request that has not arrived, and close its connection."""
        with contextlib.suppress(OSError):
            conn.sock.send(answer)
        self._drop(conn)

    def _drop(self, conn: TConn) -> None:
        """Close a connection that waits for its request."""
        self.poller.unregister(conn.sock)
        self.pending_conns.remove(conn)
        self.nr_conns -= 1
        conn.close()
