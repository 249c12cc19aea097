"""Fetch a page of the public net for somebody, and nothing else: no address of this machine or of those around it.

A name is resolved once for each connection, every address that it has is checked, and the connection goes to one of
those (so that a name which means something else a moment later gains nothing). Redirects are followed here, each one
checked like the first address. No proxy, no cookies and no credentials are used. It ends in time, however slowly what
comes drips, and within a size; what is compressed is refused, since its size says nothing.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from msgspec import Struct

from rag_assistant import __version__
from rag_assistant.records.errors import AddressRefused, BodyTooLarge, PageNotFetched
from rag_assistant.runtime.public_addresses import is_public

USER_AGENT = f"rag-assistant/{__version__} (fetches single pages for a person)"
MAX_URL_CHARS = 2000
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
# For everything together: names, redirects, the whole page.
MAX_SECONDS = 30.0
BYTES_AT_ONCE = 1 << 16
BYTES_IN_MEMORY = 1 << 20
PORTS = {"http": 80, "https": 443}
HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")

# Return the addresses of a name and a port.
Resolve = Callable[[str, int], list[str]]
# Open a connection to an address and a port within a time.
Connect = Callable[[str, int, float], socket.socket]


class Fetched(Struct, frozen=True):
    """What came: its type and charset as its server says, and the content, to be read from its beginning."""

    url: str
    media_type: str
    charset: str | None
    content: IO[bytes]


def resolve(host: str, port: int) -> list[str]:
    """Return every address of a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


def connect(address: str, port: int, seconds: float) -> socket.socket:
    """Open a connection to a numeric address."""
    return socket.create_connection((address, port), seconds)


class PublicHttp:
    """Fetches pages. ``resolve`` and ``connect`` are the ways to the network, and there are no others."""

    def __init__(
        self, resolve: Resolve = resolve, connect: Connect = connect, max_seconds: float = MAX_SECONDS
    ) -> None:
        self._resolve = resolve
        self._connect = connect
        self._max_seconds = max_seconds

    @contextmanager
    def fetch(self, url: str, ports: Collection[int], max_mb: int, accept: str) -> Iterator[Fetched]:
        """Fetch what is at an address. Raises AddressRefused, PageNotFetched, BodyTooLarge."""
        deadline = _Deadline(self._max_seconds)
        with closing(deadline), SpooledTemporaryFile(max_size=BYTES_IN_MEMORY) as content:
            try:
                fetched = self._follow(url, ports, max_mb, accept, deadline, content)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if deadline.is_over:
                    raise PageNotFetched(f"{url} takes longer than {self._max_seconds:g} seconds.") from error
                raise PageNotFetched(f"{url} could not be fetched: {_reason(error)}.") from error
            content.seek(0)
            yield fetched

    def _follow(
        self, url: str, ports: Collection[int], max_mb: int, accept: str, deadline: _Deadline, content: IO[bytes]
    ) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            parts = checked_address(url, ports)
            connection = _Connection(parts, self._open, deadline)
            with closing(connection):
                connection.request("GET", urlunsplit(("", "", parts.path or "/", parts.query, "")), headers={
                    "User-Agent": USER_AGENT, "Accept": accept, "Accept-Encoding": "identity", "Connection": "close",
                })  # fmt: skip
                with connection.getresponse() as response:
                    if response.status not in REDIRECTS:
                        _receive(response, url, max_mb, deadline, content)
                        headers = response.headers
                        return Fetched(url, headers.get_content_type(), headers.get_content_charset(), content)
                    location = response.getheader("Location")
            if not location:
                raise PageNotFetched(f"{url} answers {response.status} without saying where to go.")
            url = urljoin(url, location)
        raise PageNotFetched(f"There are more than {MAX_REDIRECTS} redirects; the last one leads to {url[:200]}.")

    def _open(self, host: str, port: int, deadline: _Deadline) -> socket.socket:
        """Return a connection to one of the addresses of a name, of which none may be anything but public.

        What a name of the house means is not told: it is refused in the same words as a name that means nothing.
        """
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError):
            addresses = []
        if not addresses or not all(map(is_public, addresses)):
            raise AddressRefused(f"{host} has no public address. Pages are fetched from the public net alone.")
        failed: OSError | None = None
        for address in addresses:
            try:
                return self._connect(address, port, deadline.seconds_left())
            except OSError as error:
                failed = error
        raise failed or OSError("no address answers")


class _Deadline:
    """Ends a connection when its time is over, whatever it waits for."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def seconds_left(self) -> float:
        """Return what is left of the time. Raises TimeoutError if that is nothing."""
        if self.is_over:
            raise TimeoutError
        return max(0.01, self._end - time.monotonic())

    def watch(self, connection: socket.socket) -> None:
        """Cut this connection when the time is over."""
        self._socket = connection
        if self.is_over:
            self._cut()

    def close(self) -> None:
        """Watch no longer."""
        self._timer.cancel()

    def _cut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Of a connection in TLS, too, the plain one beneath it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Connection(http.client.HTTPConnection):
    """A connection that is opened through the guard."""

    def __init__(
        self,
        parts: SplitResult,
        open_socket: Callable[[str, int, _Deadline], socket.socket],
        deadline: _Deadline,
    ) -> None:
        super().__init__(parts.hostname or "", _port(parts))
        self.default_port = PORTS[parts.scheme]
        self._open_socket = open_socket
        self._deadline = deadline
        self._is_secure = parts.scheme == "https"

    def connect(self) -> None:
        self.sock = self._open_socket(self.host, self.port, self._deadline)
        self.sock.settimeout(None)  # The deadline cuts it.
        self._deadline.watch(self.sock)
        if self._is_secure:
            secure = _tls().wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            self.sock = secure
            self._deadline.watch(secure)
            secure.do_handshake()


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def checked_address(url: str, ports: Collection[int]) -> SplitResult:
    """Return an address in its parts. Raises AddressRefused if it is none of a page, or not of a port that is allowed.

    What its name means is checked when it is connected to.
    """
    shown = url[:200]
    if len(url) > MAX_URL_CHARS:
        raise AddressRefused(f"The address has {len(url)} characters; the limit is {MAX_URL_CHARS}.")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise AddressRefused("The address has blanks or invisible characters in it.")
    try:
        parts = urlsplit(url)
        port = _port(parts) if parts.scheme in PORTS else 0
        host = _host(parts.hostname or "")
    except (ValueError, UnicodeError) as error:
        raise AddressRefused(f'"{shown}" is not the address of a page, such as https://example.org/page.') from error
    if parts.scheme not in PORTS or not host:
        raise AddressRefused(f'"{shown}" is not the address of a page, such as https://example.org/page.')
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The address has a name or a password in it. Such pages are not fetched.")
    if port not in ports:
        allowed = ", ".join(map(str, sorted(ports)))
        raise AddressRefused(f"The address names port {port}; pages are fetched from ports {allowed}.")
    named = f"[{host}]" if ":" in host else host
    place = named if port == PORTS[parts.scheme] else f"{named}:{port}"
    path, query = (quote(text, safe="/%:@!$&'()*+,;=?~-._") for text in (parts.path, parts.query))
    return SplitResult(parts.scheme, place, path, query, "")


def _host(name: str) -> str:
    """Return a host's name as it goes over the wire. Raises ValueError for what can be none."""
    if ":" in name:
        return name  # An address of IPv6, which is checked like all.
    host = name.encode("idna").decode().lower()
    if host and not HOST_NAME.fullmatch(host):
        raise ValueError(name)
    return host


def _port(parts: SplitResult) -> int:
    return PORTS[parts.scheme] if parts.port is None else parts.port


def _receive(
    response: http.client.HTTPResponse, url: str, max_mb: int, deadline: _Deadline, content: IO[bytes]
) -> None:
    """Keep the content of an answer. Raises PageNotFetched, BodyTooLarge, OSError."""
    if response.status != http.HTTPStatus.OK:
        raise PageNotFetched(f"{url} answers {response.status} {response.reason}".rstrip() + ".")
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise PageNotFetched(f"{url} sends a compressed page, though none was asked for. Such pages are not read.")
    too_large = BodyTooLarge(f"The page is larger than {max_mb} MB, the largest that is accepted.")
    if (response.length or 0) > max_mb * 1_000_000:
        raise too_large
    size = 0
    while piece := response.read1(BYTES_AT_ONCE):
        size += len(piece)
        if size > max_mb * 1_000_000:
            raise too_large
        deadline.seconds_left()
        content.write(piece)
    deadline.seconds_left()
    if response.length:
        raise ConnectionResetError("the connection broke before the end")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError):
        return error.strerror or str(error) or "the connection broke"
    return "what it sends is not HTTP"
