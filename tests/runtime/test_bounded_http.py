"""One deadline for a whole exchange and one size for each response, whatever a server sends."""

import gzip

import httpx2
import pytest

from rag_assistant.runtime.bounded_http import BoundedTransport, OverlongBody, deadline
from tests.testkit.lying_endpoint import Shape, lying_endpoint
from tests.web.conftest import until

HEAD = b"HTTP/1.1 200 OK\r\n"


def fetch(shape: Shape, seconds: float = 20.0) -> bytes:
    with (
        lying_endpoint(lambda _: shape) as url,
        httpx2.Client(transport=BoundedTransport(1000), timeout=30.0) as client,
        deadline(seconds),
    ):
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
    with pytest.raises(httpx2.ReadTimeout):
        fetch(shape, 0.3)


@pytest.mark.parametrize("shape", [Shape(HEAD + b"\r\n", "repeat", b"a" * 600)])
def test_what_is_too_long_is_refused(shape: Shape) -> None:
    with pytest.raises(OverlongBody, match="more than 1,000 bytes"):
        fetch(shape)


def packed(size: int) -> Shape:
    body = gzip.compress(b"a" * size)
    return Shape(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def test_what_is_compressed_is_bounded_by_what_it_becomes() -> None:
    assert fetch(packed(1000)) == b"a" * 1000
    with pytest.raises(OverlongBody):
        fetch(packed(1_000_000))


def test_another_compression_is_refused() -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="compressed"):
        fetch(Shape(HEAD + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx"))


def test_an_exchange_after_the_deadline_ends_at_once() -> None:
    with (
        lying_endpoint(lambda _: Shape(b"", "silence")) as url,
        httpx2.Client(transport=BoundedTransport(1000), timeout=30.0) as client,
        deadline(0.0) as exchange,
    ):
        until(lambda: exchange.ended)
        with pytest.raises(httpx2.ReadTimeout):
            client.get(url)


def test_what_is_short_comes_whole() -> None:
    assert fetch(Shape(HEAD + b"Content-Length: 5\r\n\r\ngeese")) == b"geese"
