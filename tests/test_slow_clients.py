"""Clients that are slow, silent or malformed: nobody else waits for them, and each gets an end."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import pytest
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import Task

from rag_assistant.server.connections import Server, Threads
from tests.testkit.samples import sample
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel
from tests.torture.stage import until

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
    sample(
        [
            b"",
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
            HEAD + b"Content-Length: 100\r\n\r\n{",
            HEAD + b"Content-Length: 900000\r\n\r\n{",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        ]
    ),
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


def test_a_burst_of_connections_is_accepted_in_two_looks_and_little_more_than_a_call_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One for each look at all others is quadratic: 2,000 took 2 to 5 seconds of the server's CPU time."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=400))
        sockets = dict[int, Any]()
        limits = Adjustments(backlog=400, connection_limit=1000)
        server = Server(lambda *_: [], sockets, True, listener, Threads(8), limits, bind_socket=False)
        stack.callback(server.task_dispatcher.shutdown)
        stack.callback(wasyncore.close_all, sockets)
        others, accept = len(sockets), Mock(wraps=server.accept)
        monkeypatch.setattr(server, "accept", accept)
        for _ in range(300):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        wasyncore.loop(timeout=5, use_poll=True, map=sockets, count=2)
        assert len(sockets) - others == 300
        assert accept.call_count <= 302, "nobody waits any more"


class Waiting(Task):
    """A task that lasts until an event."""

    def __init__(self, ended: threading.Event) -> None:
        self.ended = ended

    def service(self) -> None:
        self.ended.wait(20)


def test_threads_come_with_work_and_leave_without() -> None:
    threads, ended = Threads(20), threading.Event()
    assert until(lambda: threads.active_count == 0, 20)
    for expected, added in ((8, 8), (9, 1), (20, 31)):
        for _ in range(added):
            threads.add_task(Waiting(ended))
        assert len(threads.threads) == expected
    ended.set()
    assert until(lambda: not threads.queue and threads.active_count == 0, 20)
    threads.end_idle()
    assert until(lambda: len(threads.threads) == 10, 20)
    for _ in range(3):
        threads.end_idle()
    assert until(lambda: len(threads.threads) == 8, 20)
    threads.shutdown()


def test_who_holds_many_connections_loses_the_oldest_and_nobody_else(tmp_path: Path, server_fork: ServerFork) -> None:
    """With 240 descriptors, which are 72 connections; the oldest would leave by itself after 30 seconds."""
    server = ServerProcess(tmp_path, server_fork.launch, MAX_DESCRIPTORS="240", MAX_RUNNING_ANSWERS="8")
    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start("/healthz")
        other = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20, ("127.0.0.2", 0)))
        other.sendall(HEAD + b"Connection: close\r\nContent-Length: 3\r\n\r\n{")
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
        assert server.call("GET", "/healthz")[0] == 200
        other.sendall(b"}}")
        assert other.recv(100).startswith(b"HTTP/1.1 400 "), "it still had its turn"


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


@pytest.mark.parametrize(
    "half", sample([b"", b"GET /healthz HTTP/1.1\r\nX-Slow: ", HEAD + b"Content-Length: 100\r\n\r\n{"])
)
def test_who_says_no_more_is_sent_away(hurried: ServerProcess, half: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hurried.port), 30) as connection:
        connection.sendall(half)
        assert connection.recv(1) == b""


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["length", "address"],
)
def test_a_head_that_says_the_impossible_is_a_bad_request(server: ServerProcess, head: bytes) -> None:
    assert sent(server, head).startswith(b"HTTP/1.1 400 ")
    assert "exception" not in server.log.read_text()


@pytest.mark.parametrize(
    ("version", "doubt"),
    [(b"1.1", b"Content-Length: 5\r\nTransfer-Encoding: chunked"), (b"1.0", b"Transfer-Encoding: chunked")],
)
def test_a_connection_ends_where_the_length_of_a_body_is_in_doubt(
    server: ServerProcess, version: bytes, doubt: bytes
) -> None:
    head = b"GET /healthz HTTP/" + version + b"\r\nHost: localhost\r\nConnection: keep-alive\r\n" + doubt
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = sent(server, head + b"\r\n\r\n0\r\n\r\n", smuggled)
    assert (answer.count(b"HTTP/1."), b"Connection: close" in answer) == (1, True)


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
