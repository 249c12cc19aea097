"""Pages of the public net are fetched, and nothing else: what the guard refuses, and that nothing gets past it."""

import gzip
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from rag_assistant.records import errors
from rag_assistant.runtime.public_http import MAX_REDIRECTS, PublicHttp, is_public
from tests.testkit.samples import sample
from tests.testkit.site import OK, PUBLIC, Answer, Rerouted, Site, leads_to, sends


@pytest.fixture
def site() -> Iterator[Site]:
    with closing(Site()) as made:
        yield made


def fetch(site: Site, url: str = "http://example.org/page", max_mb: int = 1, seconds: float = 5.0) -> bytes:
    http = PublicHttp(site.resolve, site.network, seconds)
    with http.fetch(url, (80, 443), max_mb, "text/html") as fetched:
        return fetched.content.read()


def test_a_page_is_fetched_by_whoever_says_what_it_is(site: Site) -> None:
    site.answers["/page?q=a%20b"] = sends(b"Geese.")
    assert fetch(site, "http://example.org/page?q=a%20b#part") == b"Geese."
    assert site.connected == [f"{PUBLIC}:80"]
    (request,) = site.requests
    assert "Host: example.org\r\n" in request
    assert "User-Agent: rag-assistant/" in request
    assert "Accept-Encoding: identity" in request
    assert "Cookie" not in request
    assert "Authorization" not in request


OTHER_ADDRESSES = """127.0.0.1 127.8.8.8 0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 169.254.169.254 172.16.0.1 172.31.255.255
    192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1
    255.255.255.255 168.63.129.16 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:93.184.215.14 ::ffff:0:7f00:1 64:ff9b::7f00:1
    64:ff9b:1::a00:1 2001::1 2001:db8::1 2002:7f00:1:: fc00::1 fd12::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
    5f00::1 localhost""".split()


def test_no_other_address_is_public() -> None:
    assert [address for address in OTHER_ADDRESSES if is_public(address)] == []


@pytest.mark.parametrize("address", sample(["127.0.0.1", "169.254.169.254", "fd12::1"], 3))
def test_what_is_not_public_is_not_connected_to(site: Site, address: str) -> None:
    for addresses in ([address], [PUBLIC, address], [address, PUBLIC]):
        site.names["example.org"] = addresses
        with pytest.raises(errors.AddressRefused, match=r"example\.org has no public address"):
            fetch(site)
    assert (site.connected, site.requests) == ([], [])


@pytest.mark.parametrize("address", ["1.1.1.1", PUBLIC, "2606:4700:4700::1111", "2a00:1450:4001:830::200e"])
def test_addresses_of_the_public_net_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", "127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 localhost localhost. [::1] [::ffff:127.0.0.1] 0".split()
)
def test_this_machine_is_not_reached_however_its_name_is_written(site: Site, host: str) -> None:
    """With the real resolver and a real server that would answer."""
    site.answers["/"] = sends(b"a secret")
    http = PublicHttp()
    with pytest.raises(errors.AddressRefused), http.fetch(f"http://{host}:{site.port}/", (site.port,), 1, "*/*"):
        pass
    assert site.requests == []


def test_a_name_that_means_something_else_a_moment_later_gains_nothing(site: Site) -> None:
    """DNS rebinding: what was checked is what is connected to; the name is not asked for again."""
    answers = [[PUBLIC], ["127.0.0.1"]]
    http = PublicHttp(lambda host, port: answers.pop(0), site.network, 5.0)
    site.answers["/a"], site.answers["/b"] = leads_to("/b"), sends(b"a secret")
    with pytest.raises(errors.AddressRefused), http.fetch("http://example.org/a", (80,), 1, "*/*"):
        pass
    assert site.connected == [f"{PUBLIC}:80"], "once for the first, never for what it means then"


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://127.0.0.1/", errors.AddressRefused),
        ("http://inside.example/", errors.AddressRefused),
        ("//[::1]/", errors.AddressRefused),
        ("http://example.org:8080/", errors.AddressRefused),
        ("https://somebody:word@example.org/", errors.AddressRefused),
        ("file:///etc/passwd", errors.AddressRefused),
        ("gopher://example.org/", errors.AddressRefused),
    ],
)
def test_a_redirect_is_checked_like_the_first_address(site: Site, target: str, error: type[Exception]) -> None:
    site.names |= {"inside.example": ["10.0.0.7"], "127.0.0.1": ["127.0.0.1"], "::1": ["::1"]}
    site.answers["/page"] = leads_to(target)
    with pytest.raises(error):
        fetch(site)
    assert len(site.requests) == 1


@pytest.mark.long
def test_five_redirects_are_followed_and_no_more(site: Site) -> None:
    for number in range(9):
        site.answers[f"/{number}"] = leads_to(f"/{number + 1}")
    site.answers[f"/{MAX_REDIRECTS}"] = sends(b"There.")
    assert fetch(site, "http://example.org/0") == b"There."
    site.answers[f"/{MAX_REDIRECTS}"] = leads_to("/6")
    with pytest.raises(errors.PageNotFetched, match="more than 5 redirects"):
        fetch(site, "http://example.org/0")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "example.org/page",
        "http://",
        "http:///page",
        "http://example.org:99999/",
        "http://example.org:22/",
        "http://me@example.org/",
        "http://:word@example.org/",
        "http://exa mple.org/",
        "http://example.org/\r\nX-Evil: 1",
        "http://example.org\\@127.0.0.1/",
        "http://[::1/",
        f"http://example.org/{'a' * 2000}",
    ],
)
def test_what_is_no_address_of_a_page_is_refused_before_anything_is_asked(site: Site, url: str) -> None:
    with pytest.raises(errors.AddressRefused):
        fetch(site, url)
    assert (site.resolved, site.connected) == (0, [])


@pytest.mark.long
def test_a_name_of_the_house_is_refused_in_the_words_for_one_that_means_nothing(site: Site) -> None:
    site.names["inside.example"] = ["10.0.0.7"]
    said = []
    for host in ("inside.example", "nowhere.example"):
        with pytest.raises(errors.AddressRefused) as caught:
            fetch(site, f"http://{host}/")
        said.append(str(caught.value).replace(host, "HOST"))
    assert said[0] == said[1]


@pytest.mark.parametrize("length", sample([True, False]), ids=["said", "not said"])
def test_a_page_that_is_too_large_is_given_up(site: Site, length: bool) -> None:
    site.answers["/page"] = sends(b"a" * 1_000_001, length=length)
    with pytest.raises(errors.BodyTooLarge, match="larger than 1 MB"):
        fetch(site)
    site.answers["/page"] = sends(b"a" * 1_000_000, length=length)
    assert len(fetch(site)) == 1_000_000


@pytest.mark.parametrize("kind", ["br", "deflate, gzip", "x-unknown"])
def test_what_is_compressed_in_an_unknown_way_is_refused(site: Site, kind: str) -> None:
    site.answers["/page"] = sends(b"\x1f\x8b" + b"\0" * 50, OK + f"Content-Encoding: {kind}\r\n".encode())
    with pytest.raises(errors.PageNotFetched, match="compressed"):
        fetch(site)


def test_what_is_compressed_is_bounded_by_what_it_becomes(site: Site) -> None:
    site.answers["/page"] = sends(gzip.compress(b"a" * 1_000_000), OK + b"Content-Encoding: gzip\r\n")
    assert len(fetch(site)) == 1_000_000
    site.answers["/page"] = sends(gzip.compress(b"a" * 1_000_001), OK + b"Content-Encoding: gzip\r\n")
    with pytest.raises(errors.BodyTooLarge, match="larger than 1 MB"):
        fetch(site)


def drips(start: bytes) -> Answer:
    def answer(connection: socket.socket, path: str) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(b"a")
            time.sleep(0.02)

    return answer


@pytest.mark.long
@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\nX: ", OK + b"\r\n", OK + b"Content-Length: 999\r\n\r\n"]
)
def test_what_drips_is_given_up_in_time(site: Site, start: bytes) -> None:
    site.answers["/page"] = drips(start)
    with pytest.raises(errors.PageNotFetched, match=r"takes longer than 0\.2 seconds"):
        fetch(site, seconds=0.2)


def test_redirects_share_one_time(site: Site) -> None:
    def slowly(connection: socket.socket, path: str) -> None:
        time.sleep(0.12)
        leads_to("/page")(connection, path)

    site.answers["/page"] = slowly
    with pytest.raises(errors.PageNotFetched, match=r"takes longer than 0\.3 seconds"):
        fetch(site, seconds=0.3)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (sends(b"", b"HTTP/1.1 404 Not Found\r\n"), "answers 404 Not Found"),
        (sends(b"", b"HTTP/1.1 302 Found\r\n"), "without saying where"),
        (sends(b"x", b"SSH-2.0-OpenSSH\r\n"), "not HTTP"),
        (sends(b"half", OK + b"Content-Length: 999\r\n", length=False), "broke before the end"),
    ],
)
def test_what_its_server_does_is_said(site: Site, answer: Answer, says: str) -> None:
    site.answers["/page"] = answer
    with pytest.raises(errors.PageNotFetched, match=says):
        fetch(site)


@contextmanager
def refusing() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    yield port


def test_a_server_that_is_away_is_named(site: Site) -> None:
    with refusing() as port:
        http = PublicHttp(site.resolve, lambda: Rerouted(port, []), 5.0)
        with (
            pytest.raises(errors.PageNotFetched, match="Connection refused"),
            http.fetch("http://example.org/", (80,), 1, "*/*"),
        ):
            pass


def test_a_certificate_of_somebody_else_is_refused(site: Site, tmp_path: Path) -> None:
    """TLS is checked, though the connection goes to a number."""
    pem = str(tmp_path / "own.pem")
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=example.org"
    subprocess.run(["openssl", *request.split(), "-keyout", pem, "-out", pem], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    def speaks_tls(connection: socket.socket) -> None:
        with suppress(OSError):
            context.wrap_socket(connection, server_side=True).close()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=lambda: speaks_tls(listener.accept()[0]), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        http = PublicHttp(site.resolve, lambda: Rerouted(port, []), 5.0)
        with (
            pytest.raises(errors.PageNotFetched, match="certificate is not valid"),
            http.fetch("https://example.org/", (443,), 1, "*/*"),
        ):
            pass
        thread.join(5)
