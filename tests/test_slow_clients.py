"""Clients that are slow, silent or malformed: nobody else waits for them, and each gets an end."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel

MORE_THAN_THREADS = 60
ASKED = b'{"question": "Why?"}'
HEAD = b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, server_fork: ServerFork) -> Iterator[ServerProcess]:
    stub = StubModel()
    made = ServerProcess(
        tmp_path_factory.mktemp("slow"), server_fork.launch,
        OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model", QUERY_REWRITING="words", MAX_RUNNING_ANSWERS="8",
    )  # fmt: skip
    made.start("/readyz")
    yield made
    made.kill()
    stub.close()


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory, server_fork: ServerFork) -> Iterator[ServerProcess]:
    """A server for whose requests there is a second, where it is ten for people."""
    made = ServerProcess(tmp_path_factory.mktemp("hurried"), server_fork.launch, REQUEST_SECONDS="1")
    made.start()
    yield made
    made.kill()


def sent(server: ServerProcess, *pieces: bytes) -> bytes:
    """Send pieces over one connection and return all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), 20) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.05)
        connection.settimeout(20)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        HEAD + b"Content-Length: 100\r\n\r\n{",
        HEAD + b"Content-Length: 900000\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
    ids=["silent", "head", "body", "large body", "chunks"],
)
def test_nobody_waits_for_those_who_send_half_a_request(server: ServerProcess, half: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(MORE_THAN_THREADS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
            connection.sendall(half)
        assert server.call("GET", "/healthz") == (200, {"status": "ok"})
        status, answer = server.call("POST", "/api/query", {"question": "Why?"})
        assert (status, answer["status"]) == (200, "completed")


def test_who_says_nothing_makes_room_for_more(tmp_path: Path, server_fork: ServerFork) -> None:
    """With 240 descriptors, which are 72 connections: there are as many threads."""
    settings = {"MAX_DESCRIPTORS": "240", "MAX_RUNNING_ANSWERS": "8", "REQUEST_SECONDS": "1"}
    server = ServerProcess(tmp_path, server_fork.launch, **settings)
    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start()
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10)) for _ in range(90)]
        assert server.call("GET", "/healthz")[0] == 200
        silent[0].settimeout(10)
        assert silent[0].recv(1) == b"", "the oldest one left"


@pytest.mark.parametrize("half", [b"", b"GET /healthz HTTP/1.1\r\nX-Slow: ", HEAD + b"Content-Length: 100\r\n\r\n{"])
def test_who_says_no_more_is_sent_away(hurried: ServerProcess, half: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hurried.port), 30) as connection:
        connection.sendall(half)
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    ("head", "one"),
    [
        (b"", b"\r\n"),
        (b"GET /healthz HTTP/1.1\r\nX-Slow: ", b"x"),
        (HEAD + b"Content-Length: 900000\r\n\r\n", b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["blank lines", "head", "body", "chunks"],
)
def test_who_sends_bytes_one_at_a_time_is_sent_away(hurried: ServerProcess, head: bytes, one: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hurried.port), 30) as connection:
        connection.sendall(head)
        connection.settimeout(0.2)
        began = time.monotonic()
        while time.monotonic() < began + 10:
            try:
                connection.sendall(one)
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
        pytest.fail("The connection is kept.")


def test_a_large_body_may_take_longer_than_a_connection_is_idle(hurried: ServerProcess) -> None:
    piece = b"x" * 65_536
    head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (8 * len(piece))
    with socket.create_connection(("127.0.0.1", hurried.port), 30) as connection:
        connection.sendall(head)
        for _ in range(8):
            time.sleep(0.4)
            connection.sendall(piece)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_request_in_pieces_and_several_in_one_are_answered(server: ServerProcess) -> None:
    length = b"Content-Length: %d\r\n" % len(ASKED)
    closing = b"Connection: close\r\n"
    for cut in (1, 40, len(HEAD), len(HEAD) + 10, len(HEAD) + len(length) + 2):
        whole = HEAD + length + closing + b"\r\n" + ASKED
        assert b'"status":"completed"' in sent(server, whole[:cut], whole[cut:])
    parts = HEAD + b"Transfer-Encoding: chunked\r\n" + closing + b"\r\n"
    assert b'"status":"completed"' in sent(server, parts, b"%x\r\n%s\r\n" % (len(ASKED), ASKED), b"0\r\n\r\n")
    ping = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    assert sent(server, (ping + b"\r\n") * 2 + ping + closing + b"\r\n").count(b'{"status":"ok"}') == 3
    waiting = HEAD + length + b"Expect: 100-continue\r\n" + closing + b"\r\n"
    assert sent(server, waiting, ASKED).startswith(b"HTTP/1.1 100 Continue\r\n")


@pytest.mark.parametrize("header", [b"SCRIPT_NAME: /x", b"Script-Name: /x", b"PATH_INFO: /api/documents"])
def test_no_header_changes_the_path(server: ServerProcess, header: bytes) -> None:
    ask = b"GET /x/api/documents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + header + b"\r\n\r\n"
    assert sent(server, ask).startswith(b"HTTP/1.1 404 ")


def test_a_host_is_named_and_is_the_same_in_capitals(server: ServerProcess) -> None:
    rest = b"Connection: close\r\n\r\n"
    assert sent(server, b"GET /healthz HTTP/1.1\r\nHost: LOCALHOST\r\n" + rest).startswith(b"HTTP/1.1 200 ")
    assert sent(server, b"GET /healthz HTTP/1.1\r\n" + rest).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("size", [b"-1", b"x"])
def test_a_body_in_impossible_parts_is_a_bad_request(server: ServerProcess, size: bytes) -> None:
    parts = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + size + b"\r\n{}\r\n0\r\n\r\n"
    assert sent(server, parts).startswith(b"HTTP/1.1 400 ")


def test_the_longest_search_of_the_page_fits_into_an_address(server: ServerProcess) -> None:
    found = server.call("GET", f"/api/conversations?q={quote('历' * 500)}")
    assert (found[0], found[1]["conversations"]) == (200, [])


def test_a_head_without_end_is_refused(server: ServerProcess) -> None:
    with (
        contextlib.suppress(ConnectionResetError, BrokenPipeError),  # The answer may be lost where we still send.
        socket.create_connection(("127.0.0.1", server.port), 20) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Geese: hiss\r\n" * 10_000)
        assert b" 431 " in connection.recv(100)
    assert server.call("GET", "/healthz")[0] == 200


def test_who_speaks_tls_is_told_at_once_that_the_server_does_not(server: ServerProcess) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.port), 20) as connection,
        pytest.raises(ssl.SSLError, match="WRONG_VERSION_NUMBER"),  # It is no TLS, and says more than an end would.
    ):
        ssl.create_default_context().wrap_socket(connection, server_hostname="localhost")
    assert b" 400 " in sent(server, b"\x16\x03\x01")
