"""Connections to an endpoint serve one answer after the other, and only those that are whole."""

import socket
import threading
from collections.abc import Iterator

import pytest

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient, collect
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import AnswerStopped
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import timeouts, until

REQUEST = ModelRequest(({"role": "user", "content": "Why?"},))
EVENTS = (b'data: {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}\n\n', b"data: [DONE]\n\n")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TEXT = HEAD + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in EVENTS)


@pytest.fixture
def client() -> Iterator[ModelClient]:
    made = ModelClient(lambda: timeouts(connect=5.0, first_token=30.0, token=30.0, answer=60.0))
    made.warm_up()
    yield made
    made.close()


def answer(client: ModelClient, url: str, call: ModelCall | None = None) -> str:
    text, _ = collect(client.stream(Endpoint(url, None, "m"), REQUEST, call or ModelCall(), may_retry=False))
    return text


def ports(stub: StubModel) -> int:
    return len({request.port for request in stub.requests})


@pytest.mark.parametrize("reply", [Reply("One two."), Reply(body=b'{"choices": [{"message": {"content": "Yes."}}]}')])
def test_the_second_answer_opens_no_connection(client: ModelClient, stub: StubModel, reply: Reply) -> None:
    stub.default = reply
    for _ in range(3):
        assert answer(client, stub.url)
    assert (len(stub.requests), ports(stub)) == (3, 1)


@pytest.mark.parametrize("reply", [Reply(hang_before_headers=True), Reply("one two three", hang_at=2)])
def test_an_answer_over_a_kept_connection_is_stopped_and_its_connection_not_used_again(
    client: ModelClient, stub: StubModel, reply: Reply
) -> None:
    answer(client, stub.url)
    stub.replies.append(reply)
    call = ModelCall()

    def stop() -> None:
        until(lambda: len(stub.requests) == 2)
        call.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(AnswerStopped):
        answer(client, stub.url, call)
    thread.join()
    assert ports(stub) == 1
    until(lambda: stub.requests[1].left_after is not None)
    answer(client, stub.url)
    assert ports(stub) == 2


def test_a_stop_after_the_end_leaves_the_next_answer_alone(client: ModelClient, stub: StubModel) -> None:
    call = ModelCall()
    answer(client, stub.url, call)
    gate = threading.Event()
    stub.replies.append(Reply("one two three", gate=gate, gate_at=1))
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(answer(client, stub.url)))
    thread.start()
    until(lambda: len(stub.requests) == 2)
    call.stop()
    gate.set()
    thread.join(20)
    assert answers == ["one two three"]
    assert ports(stub) == 1


class Serving:
    """Sends an answer for each request; ``closes`` says when it closes a connection."""

    def __init__(self, closes: str, end: bytes = b"0\r\n\r\n") -> None:
        self.connections = 0
        self._closes, self._end = closes, end
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self.closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while self._reads_request(connection):
                connection.sendall(TEXT + self._end)
                if self._closes == "at once":
                    break
                if self._closes == "at the next request":
                    self._reads_request(connection)
                    break
        self.closed.set()

    def _reads_request(self, connection: socket.socket) -> bool:
        came = b""
        while not came.endswith(b"}"):
            piece = connection.recv(65536)
            if not piece:
                return False
            came += piece
        return True


@pytest.mark.parametrize("closes", ["at once", "at the next request"])
def test_a_connection_that_the_server_has_closed_is_no_error_for_the_next_answer(
    client: ModelClient, closes: str
) -> None:
    server = Serving(closes)
    assert answer(client, server.url) == "Yes."
    if closes == "at once":
        assert server.closed.wait(20)
    assert answer(client, server.url) == "Yes."
    assert server.connections == 2


def test_an_answer_ends_with_its_last_event_even_if_the_body_does_not(client: ModelClient) -> None:
    server = Serving("never", end=b"")
    assert answer(client, server.url) == "Yes."
    assert answer(client, server.url) == "Yes."
    assert server.connections == 2
