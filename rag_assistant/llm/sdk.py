"""The OpenAI SDK's client for every endpoint, over a transport that bounds responses.

Importing this module loads the SDK, which takes half a second: import it where it is needed.
"""

import math
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import httpx  # noqa: F401 - the SDK looks at it where it is loaded; Chroma's thread may be halfway through loading it.
import httpx2
import openai

from rag_assistant.llm.calls import ModelCall

# What an endpoint may send, however long it takes. Streams, some 300 bytes a token, aren't buffered.
MAX_ERROR_BYTES = 100_000
MAX_BODY_BYTES = 16_000_000
MAX_STREAM_BYTES = 256_000_000
# A token takes some hundred bytes; whole tool calls may come in one event.
MAX_EVENT_BYTES = 2_000_000
EVENT_ENDS = (b"\n\n", b"\r\r", b"\n\r\n")
GZIP = zlib.MAX_WBITS | 16

# The call this thread sends requests for: it is given their sockets, so that it can be ended.
_current_call: ContextVar[ModelCall | None] = ContextVar("_current_call", default=None)


class OverlongBody(httpx2.ReadError):
    """A body that is too long; the text says how much was read."""


class StreamBrokenOff(httpx2.RemoteProtocolError):
    """An event stream that ends without its final event."""


class _Client(openai.OpenAI):
    def platform_headers(self) -> dict[str, str]:
        """Send nothing about this machine: the SDK would find it out with a program that inherits our keys."""
        return {}


def open_client(
    base_url: str,
    api_key: str | None,
    *,
    max_bytes: int = MAX_BODY_BYTES,
    max_seconds: float = math.inf,
    max_idle_connections: int = 0,
) -> openai.OpenAI:
    """Return a client without retries or redirects.

    Idle connections are for requests that aren't ended from outside: only a new one reports its socket to its call.
    """
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=max_idle_connections)
    http = httpx2.Client(transport=BoundedTransport(limits, max_bytes, max_seconds))
    return _Client(base_url=base_url, api_key=api_key or "none", max_retries=0, http_client=http)


def timeouts(connect_seconds: float, seconds: float | None = None) -> httpx2.Timeout:
    """Return the timeout for connecting, and for each read; ``None``: the watchdog's job."""
    return httpx2.Timeout(seconds, connect=connect_seconds)


@contextmanager
def sending_for(call: ModelCall) -> Iterator[None]:
    """Assign the requests this thread sends inside to a call."""
    _current_call.set(call)
    try:
        yield
    finally:
        _current_call.set(None)


class BoundedTransport(httpx2.HTTPTransport):
    """The SDK's own transport, with bounded bodies, and sockets that the current call can close."""

    def __init__(self, limits: httpx2.Limits, max_bytes: int, max_seconds: float) -> None:
        super().__init__(limits=limits)
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response when its headers are there."""
        request.headers["Accept-Encoding"] = "identity"
        call = _current_call.get()
        if call is not None:
            request.extensions = {**request.extensions, "trace": _attaching(call)}
        response = super().handle_request(request)
        body = cast("httpx2.SyncByteStream", response.stream)
        encoding = response.headers.pop("content-encoding", "identity")
        if encoding not in ("identity", "gzip"):
            body.close()
            raise httpx2.RemoteProtocolError(f"the answer is packed as {encoding[:20]!r}, which nobody asked for")
        is_gzip, is_stream = encoding == "gzip", is_event_stream(response) and response.is_success
        max_bytes = MAX_STREAM_BYTES if is_stream and not is_gzip else self._max_bytes
        if not response.is_success:
            max_bytes = MAX_ERROR_BYTES
        until = time.monotonic() + self._max_seconds
        response.stream = _BoundedBody(body, max_bytes, until, is_gzip, is_stream, is_cut=not response.is_success)
        return response


def is_event_stream(response: httpx2.Response) -> bool:
    """Return whether a body is server-sent events."""
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


def _attaching(call: ModelCall) -> Callable[[str, dict[str, Any]], None]:
    """Return the callback that reports a connection's socket to its call (the ``trace`` extension of httpx)."""

    def trace(event: str, facts: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            call.attach(facts["return_value"].get_extra_info("socket"))

    return trace


@dataclass(eq=False)
class _BoundedBody(httpx2.SyncByteStream):
    """A bounded body: an error's is cut silently (``is_cut``), others raise OverlongBody, or ReadTimeout when late."""

    body: httpx2.SyncByteStream
    max_bytes: int
    until: float
    is_gzip: bool
    is_event_stream: bool
    is_cut: bool

    def __iter__(self) -> Iterator[bytes]:
        """Yield the decompressed body as it comes."""
        read = event_bytes = 0
        end = b""
        for piece in self._unpacked() if self.is_gzip else self.body:
            read += len(piece)
            if read > self.max_bytes and self.is_cut:
                return
            if read > self.max_bytes:
                raise OverlongBody(f"more than {self.max_bytes:,} bytes")
            if time.monotonic() > self.until:
                raise httpx2.ReadTimeout("the answer does not end")
            if self.is_event_stream:
                event_bytes += len(piece)
                end += piece
                last = max(end.rfind(one) for one in EVENT_ENDS)
                if last >= 0:
                    event_bytes = len(end) - last
                if event_bytes > MAX_EVENT_BYTES:
                    raise OverlongBody(f"an event of more than {MAX_EVENT_BYTES:,} bytes")
                end = end[-3:]
            yield piece
        if self.is_event_stream:
            raise StreamBrokenOff("the stream ended before the answer did")

    def _unpacked(self) -> Iterator[bytes]:
        """Decompress what nobody asked to be compressed; some proxies compress everything."""
        unpacker = zlib.decompressobj(GZIP)
        for piece in self.body:
            try:
                yield unpacker.decompress(piece, self.max_bytes + 1)
            except zlib.error as error:
                raise httpx2.RemoteProtocolError(str(error)) from error

    def close(self) -> None:
        """Close the connection: the endpoint sees it and stops."""
        self.body.close()
