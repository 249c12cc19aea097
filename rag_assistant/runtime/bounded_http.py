"""Bound what another server may take and send: one deadline for a whole exchange, and the size of each response."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import httpx2


class Deadline:
    """Closes connections when the time is over, whatever they wait for."""

    def __init__(self, seconds: float) -> None:
        self._connections: list[socket.socket] = []
        self._changing = threading.Lock()
        self.is_over = False
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, event: str, info: dict[str, Any]) -> None:
        """Register a new connection (the ``trace`` extension of httpx). Raises TimeoutError if the time is over."""
        if event == "connection.connect_tcp.complete":
            # A duplicate survives when TLS takes the socket over, and shutting it down ends the same connection.
            connection = info["return_value"].get_extra_info("socket").dup()
            with self._changing:
                self._connections.append(connection)
            if self.is_over:
                self._cut()
        elif self.is_over and event == "connection.connect_tcp.started":  # Later ones also close what is open.
            raise TimeoutError

    def close(self) -> None:
        self._timer.cancel()
        with self._changing:
            while self._connections:
                self._connections.pop().close()

    def _cut(self) -> None:
        with self._changing:
            self.is_over = True
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class BoundedTransport(httpx2.BaseTransport):
    """Aborts a response that is too long, or compressed, since its size says nothing; or when the time is over."""

    def __init__(self, network: httpx2.BaseTransport, deadline: Deadline, max_bytes: int) -> None:
        self._network = network
        self._deadline = deadline
        self._max_bytes = max_bytes

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, uncompressed."""
        request.headers["Accept-Encoding"] = "identity"
        request.extensions = {**request.extensions, "trace": self._deadline.watch}
        response = self._network.handle_request(request)
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            response.close()
            raise httpx2.RemoteProtocolError("The answer is compressed, though it was not asked to be.")
        body = cast("httpx2.SyncByteStream", response.stream)
        response.stream = _Bounded(body, self._deadline, self._max_bytes)
        return response

    def close(self) -> None:
        self._network.close()


@dataclass(eq=False)
class _Bounded(httpx2.SyncByteStream):
    stream: httpx2.SyncByteStream
    deadline: Deadline
    max_bytes: int

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self.stream:
            size += len(piece)
            if size > self.max_bytes:
                raise httpx2.RemoteProtocolError(f"The answer has more than {self.max_bytes} bytes.")
            yield piece
        if self.deadline.is_over:  # An end that is ours.
            raise httpx2.ReadTimeout("The answer comes too slowly.")

    def close(self) -> None:
        self.stream.close()
