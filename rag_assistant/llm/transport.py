"""The SDK's connection to an endpoint: a socket and a parser in C behind the SDK's own interface.

The SDK's default reads a streamed answer at several times the cost (docs/benchmarks.md), and does not tell which socket
a call waits on.
"""

from __future__ import annotations

import math
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache, partial
from typing import cast

import httptools
import httpx2

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.kept_connections import KeptConnections

# More than TLS has in one record: nothing is left decrypted that who watches the socket would not see.
BYTES_AT_ONCE = 65536
# What an endpoint may send, however long it goes on. Of a stream, some 300 bytes a token, nothing is held.
MAX_HEAD_BYTES = 100_000
MAX_ERROR_BYTES = 100_000
MAX_BODY_BYTES = 16_000_000
MAX_STREAM_BYTES = 256_000_000
GZIP = zlib.MAX_WBITS | 16

# Takes a connection whose answer has come to its end.
Keep = Callable[[socket.socket], None]

current_call: ContextVar[ModelCall | None] = ContextVar("current_call", default=None)


class SocketTransport(httpx2.BaseTransport):
    """Sends requests to one endpoint; the current call gets to know the socket, so that it can be ended.

    A connection whose answer has come to its end takes another request soon after.
    """

    def __init__(self, connect_seconds: Callable[[], float]) -> None:
        self._connect_seconds = connect_seconds
        self._tls: ssl.SSLContext | None = None
        self._kept = KeptConnections()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response when its headers are there. Raises ConnectError, ReadError, RemoteProtocolError."""
        sent = b"%b\r\n%b" % (head_of(request), request.read())
        return self.send(request.url, sent, current_call.get()).as_response(request)

    def send(self, url: httpx2.URL, request: bytes, call: ModelCall | None) -> Body:
        """Send a request as it is, and return what is answered when its headers are there; raises the same."""
        keep = partial(self._keep, call)
        return self._ask_again(request, call, keep) or self._ask(Body(self._connect(url), keep), request, call)

    def close(self) -> None:
        """Close the connections that wait for another request."""
        self._kept.close()

    def _ask_again(self, request: bytes, call: ModelCall | None, keep: Keep) -> Body | None:
        """Ask over a kept connection; ``None`` if there is none, or the endpoint closes it instead of answering.

        A call that has ended closed it itself, and asks nobody else.
        """
        connection = self._kept.take()
        if connection is None:
            return None
        body = Body(connection, keep)
        try:
            return self._ask(body, request, call)
        except (OSError, httpx2.ReadError, httpx2.RemoteProtocolError):
            if body.has_begun or (call is not None and call.ended):
                raise
            return None

    def _ask(self, body: Body, request: bytes, call: ModelCall | None) -> Body:
        """Send a request, and return the body of its answer when the head is read."""
        if call is not None:
            call.attach(body.connection)
        try:
            body.connection.sendall(request)
            body.read_head()
        except BaseException:
            body.connection.close()
            raise
        return body

    def _keep(self, call: ModelCall | None, connection: socket.socket) -> None:
        """Keep a connection for the next request, which the call of this one cannot end any more."""
        if call is not None:
            call.detach(connection)
        self._kept.keep(connection)

    def _connect(self, url: httpx2.URL) -> socket.socket:
        """Return an open connection. Only connecting is limited here: later silence is the watchdog's business."""
        secure = url.scheme == "https"
        try:
            connection = socket.create_connection(
                (url.host, url.port or (443 if secure else 80)), self._connect_seconds()
            )
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure:
                self._tls = self._tls or httpx2.create_ssl_context()
                connection = self._tls.wrap_socket(connection, server_hostname=url.host)
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        connection.settimeout(None)
        return connection


class OverlongBody(httpx2.ReadError):
    """A body that is longer than it may be; the text says how much was read."""


class BoundedStream(httpx2.SyncByteStream):
    """A body that ends: ``cut`` there without a word, else with OverlongBody, or after some seconds ReadTimeout."""

    def __init__(
        self, body: httpx2.SyncByteStream, max_bytes: int, *, cut: bool = False, max_seconds: float = math.inf
    ) -> None:
        self._body = body
        self._max_bytes = self._left = max_bytes
        self._cut = cut
        self._until = time.monotonic() + max_seconds

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._body:
            self._left -= len(piece)
            if self._left < 0 and self._cut:
                return
            if self._left < 0:
                raise OverlongBody(f"more than {self._max_bytes:,} bytes")
            if time.monotonic() > self._until:
                raise httpx2.ReadTimeout("the answer does not end")
            yield piece

    def close(self) -> None:
        """Close the connection: the endpoint sees it and stops."""
        self._body.close()


class BoundedTransport(httpx2.HTTPTransport):
    """The SDK's own transport, which keeps connections open, with bodies that end."""

    def __init__(self, max_bytes: int, max_seconds: float) -> None:
        super().__init__(verify=_trusted())
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response when its headers are there."""
        response = super().handle_request(request)
        body = cast("httpx2.SyncByteStream", response.stream)
        is_error = response.status_code >= 400
        max_bytes = MAX_ERROR_BYTES if is_error else self._max_bytes
        response.stream = BoundedStream(body, max_bytes, cut=is_error, max_seconds=self._max_seconds)
        return response


@cache
def _trusted() -> ssl.SSLContext:
    """Return whom such connections trust: to read that takes 30 ms, also for an address without TLS."""
    return httpx2.create_ssl_context()


class _Received(threading.local):
    """Where a thread receives: new memory for each piece would cost more than to receive it."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(BYTES_AT_ONCE))


_received = _Received()


class Body(httpx2.SyncByteStream):
    """The body of a response, in the pieces in which it arrives. What the parser finds lands in the attributes.

    What comes behind its end was not asked for, and is left out.
    """

    def __init__(self, connection: socket.socket, keep: Keep) -> None:
        self.connection = connection
        self._keep = keep
        self.max_bytes = MAX_BODY_BYTES
        self._pieces: list[bytes] = []
        self._unpack: Callable[[bytes, int], bytes] | None = None
        self.on_body = self._pieces.append
        self._asked_for: int | None = None  # So many of them, where others follow; all, where none do.
        self._received_bytes = 0
        self.has_begun = False
        self.status = 0
        self._head_read = False
        self.is_complete = False
        self._may_be_kept = False
        self.headers: list[tuple[bytes, bytes]] = []
        self.parser = httptools.HttpResponseParser(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header from the parser."""
        if not self.is_complete:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take note that the head is read, unless it is only a promise of one (100 Continue)."""
        if not self.is_complete:
            self.status = self.parser.get_status_code()
            self._head_read = self.status >= 200

    def on_message_complete(self) -> None:
        """Take note that the body has come to its end."""
        if not self.is_complete:
            self.is_complete = self._head_read
            self._may_be_kept = self.is_complete and self.parser.should_keep_alive()

    def on_message_begin(self) -> None:
        """Take note that an answer begins; behind the end, it is one that nobody asked for."""
        if self.is_complete and self._asked_for is None:
            self._asked_for, self._may_be_kept = len(self._pieces), False

    def read_head(self) -> None:
        """Return when the head is read, without what only promises one (100 Continue)."""
        received = 0
        while not self._head_read:
            size = self._receive()
            received += size
            if not size:
                raise httpx2.RemoteProtocolError("the connection was closed without an answer")
            if received > MAX_HEAD_BYTES + BYTES_AT_ONCE:
                raise httpx2.RemoteProtocolError("the head of the answer does not end")
        if self._header(b"content-encoding") == b"gzip":
            # Nobody asked for it, but some proxies pack all that they pass on. A piece may unpack to a thousand times
            # its bytes, so it may not be as long as a stream.
            self._unpack = zlib.decompressobj(GZIP).decompress
            self.headers = [(name, value) for name, value in self.headers if name.lower() != b"content-encoding"]
        elif self.is_event_stream:
            self.max_bytes = MAX_STREAM_BYTES

    @property
    def is_event_stream(self) -> bool:
        """Whether it comes as server-sent events."""
        return self._header(b"content-type").startswith(b"text/event-stream")

    def _header(self, name: bytes) -> bytes:
        """Return the value of a header, empty where there is none."""
        return next((value for one, value in self.headers if one.lower() == name), b"")

    def as_response(self, request: httpx2.Request) -> httpx2.Response:
        """Return it as the SDK takes it, as an answer to a request."""
        stream = BoundedStream(self, MAX_ERROR_BYTES, cut=True) if self.status >= 400 else self
        return httpx2.Response(self.status, headers=self.headers, stream=stream, request=request)

    def read(self) -> bytes | None:
        """Return the next piece, ``None`` at the end. Raises BlockingIOError, OverlongBody and what httpx2 raises.

        A packed piece may give nothing yet.
        """
        while not self._pieces:
            if self.is_complete or not self._receive():
                return None
        piece = b"".join(self._pieces[: self._asked_for])
        self._pieces.clear()
        if self._unpack is not None:
            try:
                piece = self._unpack(piece, self.max_bytes + 1)
            except zlib.error as error:
                raise httpx2.RemoteProtocolError(str(error)) from error
        self._received_bytes += len(piece)
        if self._received_bytes > self.max_bytes:
            raise OverlongBody(f"more than {self.max_bytes:,} bytes")
        return piece

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self.read()) is not None:
            yield piece

    def close(self) -> None:
        """Keep the connection behind a whole answer; else close it: the endpoint sees that and stops."""
        if self._may_be_kept:
            self._may_be_kept = False
            self._keep(self.connection)
        else:
            self.connection.close()

    def _receive(self) -> int:
        """Feed the parser with what has arrived; return how many bytes, 0 at the end of the connection.

        Raises BlockingIOError where the connection does not block and nothing is there.
        """
        try:
            size = self.connection.recv_into(_received.buffer)
            if size:
                self.has_begun = True
                self.parser.feed_data(_received.buffer[:size])
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            raise BlockingIOError from error
        except OSError as error:
            raise httpx2.ReadError(str(error)) from error
        except httptools.HttpParserUpgrade as error:
            raise httpx2.RemoteProtocolError("the endpoint changed to another protocol") from error
        except httptools.HttpParserError as error:
            if not self.is_complete:
                raise httpx2.RemoteProtocolError(str(error)) from error
            self._may_be_kept = False
        return size


def head_of(request: httpx2.Request) -> bytes:
    """Return a request's head, without the empty line behind it.

    The answer is to come as it is.
    """
    own = {b"accept-encoding": b"identity"}
    headers = [(name, own.get(name.lower(), value)) for name, value in request.headers.raw]
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    return b"\r\n".join([*lines, *(b"%s: %s" % header for header in headers), b""])
