"""A scripted model on loopback that speaks the OpenAI protocol and records requests.

Also used by the benchmarks: ``python -m tests.testkit.stub_model`` prints its URL and serves until its input ends.
"""

import contextlib
import json
import select
import socket
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from weakref import WeakSet

from tests.testkit.embedders import WordHashEmbedder

# A text of more words is streamed in pieces of several, unless it matters where a piece ends: each costs as much CPU
# time in the SDK and on its way as a statement in SQL.
MAX_PIECES = 20


@dataclass
class Reply:
    """How the stub responds to one request. Pieces are numbered from 0; ``hang_at`` 0 hangs before the first text."""

    text: str = "An answer."
    pieces: list[str] | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    hang_before_headers: bool = False
    hang_at: int | None = None
    break_at: int | None = None
    seconds_between: float = 0.0
    seconds_before: float = 0.0
    # The piece with the number ``gate_at`` waits until it is set.
    gate: threading.Event | None = None
    gate_at: int = 0
    bytes_at_once: int | None = None
    usage: dict[str, Any] | None = None
    # What llama.cpp tells while it reads a request, before the first text.
    progress: list[Any] = field(default_factory=list)
    # None: it ends without a finish reason.
    finish_reason: str | None = "stop"
    # Each {"id", "name", "arguments"}; arguments as a dict or as the text to send. More fields are sent with the name.
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    # Deltas that precede the calls.
    thoughts: list[dict[str, Any]] = field(default_factory=list)

    def parts(self) -> list[str]:
        """Return the pieces in which the text is streamed."""
        if self.pieces is not None:
            return self.pieces
        if self.tool_calls and self.text == "An answer.":
            return []
        words = self.text.split(" ")
        words = [word if n == 0 else " " + word for n, word in enumerate(words)]
        counted = self.hang_at is not None or self.break_at is not None or self.seconds_between
        at_once = 1 if counted else len(words) // MAX_PIECES + 1
        return ["".join(words[n : n + at_once]) for n in range(0, len(words), at_once)]


@dataclass
class Seen:
    """One received request, and its client's port. ``left_after``: when the client closed the connection, in s."""

    body: dict[str, Any]
    headers: dict[str, str]
    started: float
    port: int
    left_after: float | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the request."""
        return list(self.body["messages"])


class StubModel:
    """Runs the stub. ``replies`` is used up from the left; then every request gets ``default``."""

    def __init__(self, default: Reply | None = None) -> None:
        self.default = default or Reply()
        self.replies: deque[Reply] = deque()
        self.requests: list[Seen] = []
        self.embedding_requests: list[Seen] = []
        self.embedding_replies: deque[Reply] = deque()
        self.embed: Callable[[list[str]], Any] = WordHashEmbedder().embed
        self.rerank_requests: list[Seen] = []
        self.rerank_replies: deque[Reply] = deque()
        self.relevance: Callable[[str], float] = len
        # How many tokens of a request it reports as read.
        self.count: Callable[[list[dict[str, Any]]], int] | None = None
        # Its responses at addresses beside /v1.
        self.own_addresses: dict[str, Any] = {}
        self.models_hang = False
        self.models: list[dict[str, Any]] = [{"id": "stub-model", "object": "model"}]
        stub = self

        class Handler(_Handler):
            model = stub

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._closing = threading.Event()
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def speak_tls(self, context: ssl.SSLContext) -> None:
        """Accept only TLS connections from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def next_reply(self, _seen: Seen) -> Reply:
        """Return the response to the next request."""
        return self.replies.popleft() if self.replies else self.default

    @property
    def closing(self) -> bool:
        """Whether the stub is being shut down."""
        return self._closing.is_set()

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.leave()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections: WeakSet[socket.socket] = WeakSet()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def leave(self) -> None:
        """Close kept-alive connections."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """Ignore errors: clients leave."""


class _Handler(BaseHTTPRequestHandler):
    model: StubModel
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.model.models_hang:
            self.model._closing.wait(30)
        if not self.path.endswith("/models") or self.path in self.model.own_addresses:
            own = self.model.own_addresses.get(self.path)
            return self._send(404 if own is None else 200, json.dumps(own or {}).encode())
        return self._send(200, json.dumps({"object": "list", "data": self.model.models}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/v1"):
            own = self.model.own_addresses.get(self.path)
            return self._send(404 if own is None else 200, json.dumps(own or {}).encode())
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(body, headers, time.monotonic(), self.client_address[1])
        if self.path.endswith("/embeddings"):
            return self._embed(seen)
        if self.path.endswith("/rerank"):
            return self._rerank(seen)
        self.model.requests.append(seen)
        reply = self.model.next_reply(seen)
        try:
            if reply.hang_before_headers:
                return self._hang(seen)
            if reply.status != 200 or reply.body is not None:
                return self._send(reply.status, reply.body or b'{"error": {"message": "scripted"}}', reply.headers)
            self._stream(reply, seen)
        except OSError:
            seen.left_after = time.monotonic() - seen.started
            self.close_connection = True

    def _embed(self, seen: Seen) -> None:
        self.model.embedding_requests.append(seen)
        reply = self.model.embedding_replies.popleft() if self.model.embedding_replies else Reply()
        if reply.status != 200 or reply.body is not None:
            return self._send(reply.status, reply.body or b'{"error": {"message": "scripted"}}', reply.headers)
        rows = self.model.embed(seen.body["input"])
        data = [{"object": "embedding", "index": n, "embedding": [float(x) for x in row]} for n, row in enumerate(rows)]
        return self._send(200, json.dumps({"object": "list", "data": data[::-1], "model": "e"}).encode())

    def _rerank(self, seen: Seen) -> None:
        self.model.rerank_requests.append(seen)
        reply = self.model.rerank_replies.popleft() if self.model.rerank_replies else Reply()
        if reply.status != 200 or reply.body is not None:
            return self._send(reply.status, reply.body or b'{"error": {"message": "scripted"}}', reply.headers)
        scores = [self.model.relevance(text) for text in seen.body["documents"]]
        rows = [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]
        return self._send(200, json.dumps({"results": sorted(rows, key=lambda row: -row["relevance_score"])}).encode())

    def _stream(self, reply: Reply, seen: Seen) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        parts = reply.parts()
        time.sleep(reply.seconds_before)
        read = self.model.count(seen.messages) if self.model.count else 10
        usage = reply.usage or {"prompt_tokens": read, "completion_tokens": len(parts)}
        for told in reply.progress:
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": None}], "prompt_progress": told}, reply)
            time.sleep(reply.seconds_between)
        due = time.monotonic()
        for number, part in enumerate(parts):
            if reply.gate is not None and number == reply.gate_at:
                reply.gate.wait(60)
            if number == reply.hang_at:
                return self._hang(seen)
            if number == reply.break_at:
                self.close_connection = True
                return None
            self._event({"choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]}, reply)
            if reply.seconds_between:
                due += reply.seconds_between
                time.sleep(max(0.0, due - time.monotonic()))
        for delta in [*reply.thoughts, *({"tool_calls": [one]} for one in _call_deltas(reply.tool_calls))]:
            self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, reply)
        ended = "tool_calls" if reply.tool_calls else reply.finish_reason
        if ended is not None:
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": ended}]}, reply)
        self._event({"choices": [], "usage": usage}, reply)
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _event(self, chunk: dict[str, Any], reply: Reply) -> None:
        try:
            text = json.dumps(chunk, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            text = json.dumps(chunk).encode()
        data = b"data: " + text + b"\n\n"
        size = reply.bytes_at_once or len(data)
        for start in range(0, len(data), size):
            self._chunk(data[start : start + size])

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _hang(self, seen: Seen) -> None:
        """Send nothing until the client leaves; record when it did."""
        while not self.model.closing:
            readable, _, _ = select.select([self.connection], [], [], 0.05)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                seen.left_after = time.monotonic() - seen.started
                break
        self.close_connection = True

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _call_deltas(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tool calls as a provider streams them: the name first, then the arguments in two pieces."""
    deltas: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        arguments = call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"])
        half = len(arguments) // 2
        named = {"name": call["name"], "arguments": ""}
        more = {name: call[name] for name in call.keys() - {"id", "name", "arguments"}}
        deltas.append({"index": index, "id": call["id"], "type": "function", "function": named} | more)
        deltas += [{"index": index, "function": {"arguments": piece}} for piece in (arguments[:half], arguments[half:])]
    return deltas


if __name__ == "__main__":
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    running = StubModel(Reply(**options))
    print(running.url, flush=True)
    sys.stdin.read()
    running.close()
