"""Connections and their threads: what waitress leaves open about clients that are many, slow, silent or malformed."""

from __future__ import annotations

from collections import Counter
from typing import cast

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import Task, ThreadedTaskDispatcher

# Of a body, within the time after which an idle connection is closed: a smaller one arrives whole.
MIN_BODY_BYTES = 65_536
# In one look at all connections.
MAX_ACCEPTED = 256
# Connections without a running request: kept alive, or with a request that is still to come.
MAX_QUIET = 1024
MIN_THREADS = 8
TLS_HANDSHAKE = 0x16  # The first byte of a TLS client (RFC 8446, 5.1), and of no HTTP request.


class Parser(HTTPRequestParser):
    """Refuses TLS at once (its client and a plain server would wait for each other), and heads in doubt.

    A header that is sent twice is one for WSGI; which ones were is in X-Repeated, whatever a client says there.
    """

    def received(self, data: bytes) -> int:
        """Process received data of a request; return how much was consumed."""
        if data[0] == TLS_HANDSHAKE and not self.header_plus and self.body_rcv is None:
            super().received(b"TLS\r\n\r\n")
            return len(data)
        return super().received(data)

    def parse_header(self, header_plus: bytes) -> None:
        """Read a head. If two headers say how long the body is, the connection ends with it (RFC 9112, 6.3)."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # A length of 5,000 digits, an address with half a bracket.
            raise ParsingError("The head of the request is invalid") from error
        lines = Counter(line.partition(b":")[0].decode("latin-1").lower() for line in header_plus.split(b"\r\n")[1:])
        self.headers = {**self.headers, "X_REPEATED": ",".join(name for name, count in lines.items() if count > 1)}
        if "TRANSFER_ENCODING" in self.headers or (self.chunked and "CONTENT_LENGTH" in self.headers):
            self.headers = {**self.headers, "CONNECTION": "close"}


class Channel(HTTPChannel):
    """A connection. Single bytes don't keep it alive: a head, and regular amounts of a body, must arrive in time."""

    parser_class = Parser
    _progress_at = 0.0
    _bytes_since = 0

    def received(self, data: bytes) -> bool:
        """Process received data; it counts as activity if a request began or ended, or much of a body came."""
        before = self.request
        taken = super().received(data)
        present = self.request
        ended = self.requests and present is not before
        begun = before is None and present is not None and (present.headers_finished or present.header_plus.strip())
        self._bytes_since += len(data)
        if begun or ended or self._bytes_since >= MIN_BODY_BYTES:
            self._progress_at, self._bytes_since = self.last_activity, 0
        self.last_activity = self._progress_at
        return taken


class Threads(ThreadedTaskDispatcher):
    """Threads for requests: started when all others are busy, and ended when nobody needs them."""

    def __init__(self, max_threads: int) -> None:
        super().__init__()
        self._max_threads = max_threads
        self.set_thread_count(MIN_THREADS)

    def add_task(self, task: Task) -> None:
        """Have a task done, by another thread if none is idle."""
        super().add_task(task)
        with self.lock:
            count = len(self.threads) - self.stop_count
            missing = len(self.queue) + self.active_count - count
        if missing > 0:
            self.set_thread_count(min(self._max_threads, count + missing))

    def end_idle(self) -> None:
        """End half of the idle threads."""
        with self.lock:
            count = len(self.threads) - self.stop_count
            idle = count - self.active_count
        self.set_thread_count(max(MIN_THREADS, count - idle // 2))


class Server(TcpWSGIServer):
    """Accepts all that wait: one for each look at all connections, as waitress does it, is quadratic in a burst."""

    channel_class = Channel

    def handle_accept(self) -> None:
        """Accept connections. Where too many are quiet, the address with the most loses those quiet for longest."""
        channels = cast("dict[int, Channel]", self.active_channels)
        most, before = min(len(channels) + MAX_ACCEPTED, self.adj.connection_limit), -1
        while before < len(channels) < most:
            before = len(channels)
            super().handle_accept()
        quiet = [channel for channel in channels.values() if not channel.requests]
        if len(quiet) > (limit := min(MAX_QUIET, self.adj.connection_limit // 2)):
            number = Counter[str]()
            ranked = list[tuple[int, Channel]]()
            for channel in sorted(quiet, key=lambda each: each.last_activity, reverse=True):
                number[channel.addr[0]] += 1
                ranked.append((number[channel.addr[0]], channel))
            for _rank, channel in sorted(ranked, key=lambda each: each[0])[limit:]:
                channel.will_close = True

    def maintenance(self, now: int) -> None:
        """Close connections that nothing comes from, and end threads that nobody needs."""
        super().maintenance(now)
        cast(Threads, self.task_dispatcher).end_idle()
