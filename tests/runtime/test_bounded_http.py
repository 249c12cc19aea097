"""One deadline for a whole exchange and one size for each response, whatever a server sends."""

from contextlib import closing

import httpx2
import pytest

from rag_assistant.runtime.bounded_http import BoundedTransport, Deadline
from tests.testkit.lying_endpoint import Shape, lying_endpoint
from tests.web.conftest import until

HEAD = b"HTTP/1.1 200 OK\r\n"


def fetch(shape: Shape, seconds: float = 20.0) -> bytes:
    with lying_endpoint(lambda _: shape) as url, closing(Deadline(seconds)) as deadline:
        transport = BoundedTransport(httpx2.HTTPTransport(), deadline, 1000)
        with httpx2.Client(transport=transport, timeout=30.0) as client:
            return client.get(url).content


@pytest.mark.parametrize(
    "shape",
    [
        Shape(HEAD + b"X-Geese: ", "drip", b"a"),
        Shape(HEAD + b"Content-Length: 900\r\n\r\n", "drip", b"a"),
        Shape(HEAD + b"\r\n", "drip", b"a"),
        Shape(b"", "silence"),
    ],
)
def test_what_drips_or_is_silent_ends_with_the_deadline(shape: Shape) -> None:
    with pytest.raises((httpx2.TransportError, TimeoutError)):
        fetch(shape, 0.3)


@pytest.mark.parametrize("shape", [Shape(HEAD + b"\r\n", "repeat", b"a" * 600)])
def test_what_is_too_long_is_refused(shape: Shape) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="more than 1000 bytes"):
        fetch(shape)


def test_what_is_compressed_is_refused() -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="compressed"):
        fetch(Shape(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"))


def test_an_exchange_after_the_deadline_is_refused() -> None:
    with closing(Deadline(0.0)) as deadline:
        until(lambda: deadline.is_over)
        with pytest.raises(TimeoutError):
            deadline.watch("connection.connect_tcp.started", {})


def test_what_is_short_comes_whole() -> None:
    assert fetch(Shape(HEAD + b"Content-Length: 5\r\n\r\ngeese")) == b"geese"
