"""Answers of others that end: in time, and within a size."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator

import httpx2

MAX_BYTES = 1_000_000


class BoundedTransport(httpx2.HTTPTransport):
    """Gives up an answer that is too long, or comes too slowly as a whole."""

    def __init__(self, timeout_seconds: float, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls)
        self._timeout_seconds = timeout_seconds

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. What is compressed is refused, since its size says nothing."""
        request.headers["Accept-Encoding"] = "identity"
        response = super().handle_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.close()
            raise httpx2.RemoteProtocolError("The answer is compressed, though it was not asked to be.")
        stream = response.stream
        if not isinstance(stream, httpx2.SyncByteStream):
            raise TypeError("The answer does not come in pieces.")
        response.stream = _Bounded(stream, time.monotonic() + self._timeout_seconds)
        return response


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, end: float) -> None:
        self._stream = stream
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self._stream:
            size += len(piece)
            if size > MAX_BYTES:
                raise httpx2.RemoteProtocolError(f"The answer has more than {MAX_BYTES} bytes.")
            if time.monotonic() > self._end:
                raise httpx2.ReadTimeout("The answer comes too slowly.")
            yield piece

    def close(self) -> None:
        self._stream.close()
