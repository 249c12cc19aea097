"""Bound what other servers take and send: the size of each response, and the time of a whole exchange.

Connections are kept for the next request. Each is the only one of its transport, so that its socket is known before
the headers of a response are there: whoever ends an exchange from another thread shuts it down.
"""

import os
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httpx2

# What reading a valid answer never raises.
INVALID = (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError)
# Longer error messages are cut.
MAX_ERROR_BYTES = 100_000
# A token takes some hundred bytes; whole tool calls may come in one event.
MAX_EVENT_BYTES = 2_000_000
EVENT_ENDS = (b"\n\n", b"\r\r", b"\n\r\n")
LAST_EVENT = b"[DONE]"
# How long the end of a body may come after its last event.
END_SECONDS = 0.2
GZIP = zlib.MAX_WBITS | 16
# What comes at once, some 64 kB, may become this.
MAX_UNPACKED_BYTES = 16_000_000
MAX_IDLE = 16
# Networks forget connections that are idle for minutes, without telling anybody.
Network = Callable[[], httpx2.BaseTransport]
ONE_CONNECTION = httpx2.Limits(max_connections=1, keepalive_expiry=60.0)


class OverlongBody(httpx2.ReadError):
    """A body that is too long; the text says how much was read."""


class StreamBrokenOff(httpx2.RemoteProtocolError):
    """An event stream that ends without its final event; ``body`` is what came if that is JSON instead of events."""

    def __init__(self, body: bytes = b"") -> None:
        super().__init__("the stream ended before the answer did")
        self.body = body


class Exchange:
    """The requests that a thread sends one after the other. Another thread can end them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_over = False

    @property
    def ended(self) -> bool:
        return self._is_over

    def attach(self, connection: socket.socket) -> None:
        """Set the connection that is waited on."""
        # Shutting a duplicate down ends the same connection, also while TLS takes the socket over.
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        self.detach()
        with self._lock:
            self._socket = duplicate
        if self.ended:
            self.hang_up()

    def detach(self) -> None:
        """Let the connection go; it may serve another exchange."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    def end(self) -> None:
        self._is_over = True
        self.hang_up()

    def hang_up(self) -> None:
        """Shut down the connection, which wakes the thread that waits on it."""
        with self._lock, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


_current_exchange: ContextVar[Exchange | None] = ContextVar("_current_exchange", default=None)


@contextmanager
def sending_for(exchange: Exchange) -> Iterator[None]:
    """Assign the requests this thread sends inside to an exchange."""
    before = _current_exchange.set(exchange)
    try:
        yield
    finally:
        _current_exchange.reset(before)


@contextmanager
def deadline(seconds: float) -> Iterator[Exchange]:
    """Give an exchange that ends after some seconds, whatever it waits for; the requests inside are its."""
    exchange = Exchange()
    timer = threading.Timer(seconds, exchange.end)
    timer.daemon = True
    timer.start()
    try:
        with sending_for(exchange):
            yield exchange
    finally:
        timer.cancel()
        exchange.detach()


class BoundedTransport(httpx2.BaseTransport):
    """Sends requests uncompressed, and bounds the responses; streams of events only if ``max_stream_bytes`` is set."""

    def __init__(self, max_bytes: int, max_stream_bytes: int = 0, network: Network | None = None) -> None:
        self._max_bytes = max_bytes
        self._max_stream_bytes = max_stream_bytes
        self._network = network or partial(httpx2.HTTPTransport, httpx2.create_ssl_context(), limits=ONE_CONNECTION)
        self._lock = threading.Lock()
        self._idle: list[_Line] = []
        self._max_idle = MAX_IDLE

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response when its headers are there."""
        request.headers["Accept-Encoding"] = "identity"
        exchange = _current_exchange.get() or Exchange()
        with self._lock:
            line = self._idle.pop() if self._idle else _Line(self._network())
        try:
            response = line.send(request, exchange)
            is_gzip = _is_gzip(response)
        except BaseException:
            exchange.detach()
            line.network.close()
            raise
        is_stream = self._max_stream_bytes > 0 and response.is_success and is_event_stream(response)
        max_bytes = self._max_stream_bytes if is_stream and not is_gzip else self._max_bytes
        body = cast("httpx2.SyncByteStream", response.stream)
        size = _Size(MAX_ERROR_BYTES if response.is_error else max_bytes, is_gzip)
        response.stream = _BoundedBody(body, exchange, size, is_stream, response.is_error, partial(self._keep, line))
        return response

    def close(self) -> None:
        """Close the idle connections; others are closed at their end."""
        with self._lock:
            self._max_idle = 0
            while self._idle:
                self._idle.pop().network.close()

    def _keep(self, line: "_Line") -> None:
        with self._lock:
            if len(self._idle) < self._max_idle:
                return self._idle.append(line)
        return line.network.close()


class _Line:
    """A transport with one connection, and that one's socket."""

    def __init__(self, network: httpx2.BaseTransport) -> None:
        self.network = network
        self._socket: socket.socket | None = None

    def send(self, request: httpx2.Request, exchange: Exchange) -> httpx2.Response:
        def trace(event: str, facts: dict[str, Any]) -> None:
            if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
                self._socket = facts["return_value"].get_extra_info("socket")
                exchange.attach(self._socket)

        request.extensions = {**request.extensions, "trace": trace}
        is_kept = self._socket is not None and self._socket.fileno() >= 0
        with _failures_named(exchange):
            if self._socket is not None and is_kept:
                exchange.attach(self._socket)
            try:
                return self.network.handle_request(request)
            except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
                if not is_kept or exchange.ended:
                    raise
            # The server closed it just now.
            return self.network.handle_request(request)


@contextmanager
def _failures_named(exchange: Exchange) -> Iterator[None]:
    """Say of a connection that broke because its exchange was ended that it took too long."""
    try:
        yield
    except httpx2.TransportError as error:
        if exchange.ended:
            raise httpx2.ReadTimeout("the answer did not end in time") from error
        raise


def is_event_stream(response: httpx2.Response) -> bool:
    """Return whether a body is server-sent events."""
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


def _is_gzip(response: httpx2.Response) -> bool:
    """Return whether a body is packed, and take that header away. Raises RemoteProtocolError for other encodings."""
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise httpx2.RemoteProtocolError(f"it is compressed as {encoding[:20]!r}, which nobody asked for")
    return encoding == "gzip"


class _Size:
    """Counts the bytes of a body, and unpacks what nobody asked to be packed; some proxies pack everything."""

    def __init__(self, max_bytes: int, is_gzip: bool) -> None:
        self._max_bytes = max_bytes
        self._unpacker = zlib.decompressobj(GZIP) if is_gzip else None
        self._read = 0

    def of(self, piece: bytes) -> bytes:
        """Return a piece unpacked. Raises OverlongBody, RemoteProtocolError."""
        is_over = False
        if self._unpacker is not None:
            try:
                piece = self._unpacker.decompress(piece, min(self._max_bytes + 1, MAX_UNPACKED_BYTES))
            except zlib.error as error:
                raise httpx2.RemoteProtocolError(str(error)) from error
            is_over = bool(self._unpacker.unconsumed_tail)
        self._read += len(piece)
        if is_over or self._read > self._max_bytes:
            raise OverlongBody(f"more than {self._max_bytes:,} bytes")
        return piece


def bounded_async_client(max_bytes: int, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """Return a client for an event loop, in which a body of any kind has ``max_bytes`` at most."""

    async def bound(response: httpx2.Response) -> None:
        body = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = _AsyncBoundedBody(body, _Size(max_bytes, _is_gzip(response)))

    headers = {"Accept-Encoding": "identity"}
    return httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [bound]})


@dataclass(eq=False)
class _AsyncBoundedBody(httpx2.AsyncByteStream):
    body: httpx2.AsyncByteStream
    size: _Size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self.body:
            yield self.size.of(piece)

    async def aclose(self) -> None:
        await self.body.aclose()


@dataclass(eq=False)
class _BoundedBody(httpx2.SyncByteStream):
    """A bounded body: an error's is cut silently, others raise OverlongBody, or ReadTimeout when late."""

    body: httpx2.SyncByteStream
    exchange: Exchange
    size: _Size
    is_event_stream: bool
    is_error: bool
    keep_connection: Callable[[], None]

    def __post_init__(self) -> None:
        self._pieces = iter(self.body)
        self._event_bytes = 0
        self._end = b""
        self._json = bytearray()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the decompressed body as it comes."""
        with _failures_named(self.exchange):
            try:
                for piece in map(self.size.of, self._pieces):
                    if self.is_event_stream:
                        self._count_event(piece)
                    yield piece
            except OverlongBody:
                if self.is_error:
                    return
                raise
            if self.exchange.ended:  # An end that is ours.
                raise httpx2.ReadError("ended")
            if self.is_event_stream and not self._end.endswith(EVENT_ENDS):
                yield b"\n\n"  # Or the last event would not count.
            if self.is_event_stream and LAST_EVENT not in self._end:
                raise StreamBrokenOff(bytes(self._json))

    def _count_event(self, piece: bytes) -> None:
        if self._json or (not self._end.strip() and piece.lstrip().startswith(b"{")):
            self._json += piece
        self._event_bytes += len(piece)
        self._end += piece
        last = max(map(self._end.rfind, EVENT_ENDS))
        if last >= 0:
            self._event_bytes = len(self._end) - last
        if max(self._event_bytes, len(self._json)) > MAX_EVENT_BYTES:
            raise OverlongBody(f"an event of more than {MAX_EVENT_BYTES:,} bytes")
        self._end = self._end[-16:]

    def close(self) -> None:
        """Let the connection go, which is kept only if the whole body was read; otherwise the server sees its end."""
        if LAST_EVENT in self._end and not self.exchange.ended:
            # Nobody reads on after the last event.
            timer = threading.Timer(END_SECONDS, self.exchange.hang_up)
            timer.start()
            with suppress(httpx2.TransportError):
                next(self._pieces, None)
            timer.cancel()
        self.exchange.detach()
        self.body.close()
        self.keep_connection()
