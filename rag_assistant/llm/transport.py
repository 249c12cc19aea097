"""The SDK's connection to an endpoint: a socket and a parser in C behind the SDK's own interface.

The SDK's default reads a streamed answer at several times the cost (docs/benchmarks.md), and does not tell which socket
a call waits on. Every call has a connection of its own: between two questions of a person a kept one would expire.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import cast

import httptools
import httpx2

from rag_assistant.llm.calls import ModelCall

BYTES_AT_ONCE = 65536

current_call: ContextVar[ModelCall | None] = ContextVar("current_call", default=None)


class SocketTransport(httpx2.BaseTransport):
    """Sends a request over a new connection, whose socket the current call gets to know, so that it can be ended."""

    def __init__(self, connect_seconds: Callable[[], float]) -> None:
        self._connect_seconds = connect_seconds
        self._tls: ssl.SSLContext | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response when its headers are there. Raises ConnectError, ReadError, RemoteProtocolError."""
        connection = self._connect(request.url)
        body = _Body(connection)
        call = current_call.get()
        if call is not None:
            call.attach(connection)
        try:
            connection.sendall(_head(request) + request.read())
            body.read_head()
        except BaseException:
            connection.close()
            raise
        return httpx2.Response(body.parser.get_status_code(), headers=body.headers, stream=body, request=request)

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


class _Body(httpx2.SyncByteStream):
    """The body of a response, in the pieces in which it arrives. What the parser finds lands in the attributes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pieces: list[bytes] = []
        self._head_read = False
        self._complete = False
        self.headers: list[tuple[bytes, bytes]] = []
        self.parser = httptools.HttpResponseParser(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header from the parser."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take note that the head is read, unless it is only a promise of one (100 Continue)."""
        self._head_read = self.parser.get_status_code() >= 200

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body from the parser."""
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Take note that the body has come to its end."""
        self._complete = self._head_read

    def read_head(self) -> None:
        """Return when the head is read."""
        while not self._head_read:
            if not self._receive():
                raise httpx2.RemoteProtocolError("the connection was closed without an answer")

    def __iter__(self) -> Iterator[bytes]:
        while True:
            if self._pieces:
                pieces, self._pieces = self._pieces, []
                yield b"".join(pieces)
            if self._complete or not self._receive():
                return

    def close(self) -> None:
        """Close the connection: the endpoint sees it and stops."""
        self._connection.close()

    def _receive(self) -> bool:
        """Feed the parser with what has arrived; return False at the end of the connection."""
        try:
            data = self._connection.recv(BYTES_AT_ONCE)
            if data:
                self.parser.feed_data(data)
        except OSError as error:
            raise httpx2.ReadError(str(error)) from error
        except httptools.HttpParserError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        return bool(data)


def pieces_of(response: httpx2.Response) -> Iterable[bytes]:
    """Return the body as it arrives, without the layers that would look for an encoding which we did not accept."""
    return cast("httpx2.SyncByteStream", response.stream)


def _head(request: httpx2.Request) -> bytes:
    """Return the request's head; the body comes as it is, and the connection is closed behind the answer."""
    own = {b"connection": b"close", b"accept-encoding": b"identity"}
    headers = [(name, own.get(name.lower(), value)) for name, value in request.headers.raw]
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    return b"\r\n".join([*lines, *(b"%s: %s" % header for header in headers), b"", b""])
