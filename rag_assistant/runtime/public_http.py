"""Fetch pages from public addresses only, never from this machine or its network.

A name is resolved once per request, all its addresses are checked, and the request goes to one of those (so that
changing DNS answers gain nothing). Redirects are followed here, each one checked like the first address. No proxy, no
cookies and no credentials are used. Time and size are bounded.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

import httpx2
from msgspec import Struct

from rag_assistant import __version__
from rag_assistant.records.errors import AddressRefused, BodyTooLarge, PageNotFetched
from rag_assistant.runtime.bounded_http import BoundedTransport, OverlongBody, deadline

USER_AGENT = f"rag-assistant/{__version__} (fetches single pages for a person)"
MAX_URL_CHARS = 2000
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
# For everything together: names, redirects, the whole page.
MAX_SECONDS = 30.0
BYTES_IN_MEMORY = 1 << 20
PORTS = {"http": 80, "https": 443}
HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")

# Returns the addresses of a name and a port.
Resolve = Callable[[str, int], list[str]]


class Fetched(Struct, frozen=True):
    """A response: its type and charset as declared, and the content, positioned at its start."""

    url: str
    media_type: str
    charset: str | None
    content: IO[bytes]


def addresses_of(host: str, port: int) -> list[str]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in addresses))


def direct_network() -> httpx2.BaseTransport:
    """Return a transport without a proxy."""
    return httpx2.HTTPTransport(verify=_tls(), trust_env=False)


class PublicHttp(Struct, frozen=True):
    """Fetches pages. ``resolve`` and ``network`` are the only ways out."""

    resolve: Resolve = addresses_of
    network: Callable[[], httpx2.BaseTransport] = direct_network
    max_seconds: float = MAX_SECONDS

    @contextmanager
    def fetch(self, url: str, ports: Collection[int], max_mb: int, accept: str) -> Iterator[Fetched]:
        """Give the response from an address. Raises AddressRefused, PageNotFetched, BodyTooLarge."""
        headers = {"User-Agent": USER_AGENT, "Accept": accept, "Connection": "close"}
        transport = BoundedTransport(max_mb * 1_000_000, network=lambda: _Guard(self.resolve, self.network()))
        client = httpx2.Client(transport=transport, headers=headers, timeout=self.max_seconds)
        with SpooledTemporaryFile(max_size=BYTES_IN_MEMORY) as content:
            try:
                with client, deadline(self.max_seconds) as exchange:
                    fetched = _follow(client, url, ports, content)
            except OverlongBody as error:
                raise BodyTooLarge(f"The page is larger than {max_mb} MB, which is the limit.") from error
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
                if exchange.ended:
                    raise PageNotFetched(f"{url} takes longer than {self.max_seconds:g} seconds.") from error
                raise PageNotFetched(f"{url} could not be fetched: {_reason_of(error)}.") from error
            content.seek(0)
            yield fetched


def _follow(client: httpx2.Client, url: str, ports: Collection[int], content: IO[bytes]) -> Fetched:
    for _ in range(MAX_REDIRECTS + 1):
        url = urlunsplit(checked_address(url, ports))
        client.cookies.clear()
        with client.stream("GET", url) as response:
            if response.status_code not in REDIRECTS:
                _receive(response, url, content)
                media_type = response.headers.get("Content-Type", "text/plain").partition(";")[0].strip().lower()
                return Fetched(url, media_type, response.charset_encoding, content)
            location = response.headers.get("Location")
        if not location:
            raise PageNotFetched(f"{url} redirects ({response.status_code}) without saying where to.")
        url = urljoin(url, location)
    raise PageNotFetched(f"There are more than {MAX_REDIRECTS} redirects; the last one leads to {url[:200]}.")


class _Guard(httpx2.BaseTransport):
    """Sends each request to a checked address of its host; all of them must be public."""

    def __init__(self, resolve: Resolve, network: httpx2.BaseTransport) -> None:
        self._resolve = resolve
        self._network = network

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Internal names aren't revealed: the refusal is the same as for unknown names."""
        host = request.url.host
        try:
            addresses = self._resolve(host, request.url.port or PORTS[request.url.scheme])
        except (OSError, UnicodeError):
            addresses = []
        if not addresses or not all(map(is_public, addresses)):
            raise AddressRefused(f"{host} has no public address. Pages are fetched from public addresses only.")
        # The headers and the certificate are still those of the host.
        more = request.extensions | {"sni_hostname": host}
        failed: Exception | None = None
        for address in addresses:
            url = request.url.copy_with(host=address)
            try:
                return self._network.handle_request(
                    httpx2.Request("GET", url, headers=request.headers, extensions=more)
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = error
        raise failed or OSError("no address answers")

    def close(self) -> None:
        self._network.close()


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def checked_address(url: str, ports: Collection[int]) -> SplitResult:
    """Return a parsed address. Raises AddressRefused if it isn't a page's, or its port isn't allowed.

    Where its name leads is checked when connecting.
    """
    shown = url[:200]
    if len(url) > MAX_URL_CHARS:
        raise AddressRefused(f"The address has {len(url)} characters; the limit is {MAX_URL_CHARS}.")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise AddressRefused("The address contains spaces or invisible characters.")
    try:
        parts = urlsplit(url)
        port = (PORTS[parts.scheme] if parts.port is None else parts.port) if parts.scheme in PORTS else 0
        host = _host(parts.hostname or "")
        httpx2.URL(scheme="http", host=host)
    except (ValueError, UnicodeError, httpx2.InvalidURL) as error:
        raise AddressRefused(f'"{shown}" is not a web address, such as https://example.org/page.') from error
    if parts.scheme not in PORTS or not host:
        raise AddressRefused(f'"{shown}" is not a web address, such as https://example.org/page.')
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The address contains a user name or a password. Such pages are not fetched.")
    if port not in ports:
        allowed = ", ".join(map(str, sorted(ports)))
        raise AddressRefused(f"The address has port {port}; pages are fetched only from ports {allowed}.")
    named = f"[{host}]" if ":" in host else host
    authority = named if port == PORTS[parts.scheme] else f"{named}:{port}"
    path, query = (quote(text, safe="/%:@!$&'()*+,;=?~-._") for text in (parts.path, parts.query))
    return SplitResult(parts.scheme, authority, path, query, "")


def _host(name: str) -> str:
    """Return a host's name as sent over the wire. Raises ValueError for an invalid one."""
    if ":" in name:
        return name  # An IPv6 address, which is checked like all.
    host = name.encode("idna").decode().lower()
    if host and not HOST_NAME.fullmatch(host):
        raise ValueError(name)
    return host


def _receive(response: httpx2.Response, url: str, content: IO[bytes]) -> None:
    """Store the content of a response. Raises PageNotFetched, OverlongBody, OSError."""
    if response.status_code != httpx2.codes.OK:
        raise PageNotFetched(f"{url} answers {response.status_code} {response.reason_phrase}".rstrip() + ".")
    try:
        for piece in response.iter_raw():
            content.write(piece)
    except httpx2.RemoteProtocolError as error:
        raise ConnectionResetError("the connection broke before the end") from error


def _reason_of(error: BaseException) -> str:
    """Return why a request failed, as the end of a sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, (TimeoutError, httpx2.TimeoutException)):
        return "it does not answer in time"
    if isinstance(error, httpx2.HTTPError) and error.__cause__ is None:  # Our own.
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error) or "the connection broke"
    cause = error.__cause__ or error.__context__
    return _reason_of(cause) if cause is not None else "what it sends is not HTTP"


# Global by number, and yet not public: what older versions of Python don't know (RFC 6890, 2928, 9602, documentation),
# 6to4 relays, services of Azure's platform, and IPv4 within IPv6 (RFC 4291, 2765, 6052, 8215, 3056).
NOT_PUBLIC: tuple[IPv4Network | IPv6Network, ...] = tuple(
    ip_network(network)
    for network in (
        "192.0.0.0/24 2001::/23 5f00::/16 fec0::/10 3fff::/20 192.88.99.0/24 168.63.129.16/32 "
        "::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16"
    ).split()
)


def is_public(address: str) -> bool:
    """Return whether an address is a public numeric one."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return False
    return not any(ip in network for network in NOT_PUBLIC)
