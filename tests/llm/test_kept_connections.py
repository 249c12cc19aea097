"""A connection carries one answer after the other, and never one of which it is not known how it ends."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rag_assistant.llm import client as client_module
from rag_assistant.llm import kept_connections
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient
from rag_assistant.llm.endpoint import Deadlines, Endpoint
from rag_assistant.llm.kept_connections import KeptConnections
from rag_assistant.llm.pump import TextSink
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import AnswerStopped, ModelError
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import until

REQUEST = ModelRequest(({"role": "user", "content": "Why?"},))
ANSWER = b'{"choices": [{"message": {"content": "Geese."}, "finish_reason": "stop"}]}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
GONE = b""


class Endpoints:
    """Answers each request of each connection with what stands at its place, and closes them all at the end."""

    def __init__(self, *connections: list[bytes]) -> None:
        self._connections = connections
        self.asked: list[tuple[int, int]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self._listener, contextlib.ExitStack() as opened:
            for number, answers in enumerate(self._connections):
                connection = opened.enter_context(self._listener.accept()[0])
                for place, answer in enumerate(answers):
                    assert connection.recv(65536)
                    self.asked.append((number, place))
                    connection.sendall(answer)
                    if answer == GONE:
                        connection.close()

    def join(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelClient]:
    monkeypatch.setattr(client_module, "RETRY_BACKOFF_SECONDS", ())
    made = ModelClient(lambda: Deadlines(connect=5.0, first_token=30.0, token=30.0, answer=60.0))
    made.warm_up()
    yield made
    made.close()


def answer(client: ModelClient, url: str, call: ModelCall | None = None) -> str:
    sink = TextSink()
    client.stream(Endpoint(url, None, "m"), REQUEST, call or ModelCall(), sink)
    return sink.text


def test_the_next_question_takes_the_connection_of_the_last(client: ModelClient, stub: StubModel) -> None:
    stub.replies += [Reply("One."), Reply(status=400), Reply("Three.")]
    assert answer(client, stub.url) == "One."
    with pytest.raises(ModelError):
        answer(client, stub.url)
    assert answer(client, stub.url) == "Three."
    assert len({seen.port for seen in stub.requests}) == 1


def test_questions_at_once_have_a_connection_each(client: ModelClient, stub: StubModel) -> None:
    stub.replies += [Reply(gate=threading.Event()), Reply(), Reply()]
    gate = stub.replies[0].gate
    assert gate is not None
    waiting = threading.Thread(target=answer, args=(client, stub.url))
    waiting.start()
    until(lambda: stub.requests)
    answer(client, stub.url)
    gate.set()
    waiting.join()
    assert len({seen.port for seen in stub.requests}) == 2


@pytest.mark.parametrize("head", [{"Connection": "close"}, {}])
def test_what_is_not_to_be_kept_is_closed(
    client: ModelClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch, head: dict[str, str]
) -> None:
    if not head:
        monkeypatch.setattr(kept_connections, "MAX_IDLE_SECONDS", 0.0)
    stub.replies += [Reply(status=400, headers=head), Reply()]
    with pytest.raises(ModelError):
        answer(client, stub.url)
    answer(client, stub.url)
    assert len({seen.port for seen in stub.requests}) == 2


def test_those_that_waited_too_long_are_closed_when_another_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "MAX_IDLE_SECONDS", 0.0)
    kept = KeptConnections()
    near, far = socket.socketpair()
    another = socket.socket()
    with near, far, another:
        kept.keep(near)
        kept.keep(another)
        assert (far.recv(1), another.fileno() >= 0) == (b"", True)


def test_an_answer_that_was_stopped_closes_its_connection(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply("one two three", hang_at=2))
    call = ModelCall()
    stopping = threading.Timer(0.2, call.stop)
    stopping.start()
    with pytest.raises(AnswerStopped):
        answer(client, stub.url, call)
    answer(client, stub.url)
    assert len({seen.port for seen in stub.requests}) == 2


def test_who_stops_an_answer_on_a_kept_connection_makes_no_other(
    client: ModelClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    connect = socket.create_connection

    def connected(*to: Any) -> socket.socket:
        made.append(connect(*to))
        return made[-1]

    monkeypatch.setattr(socket, "create_connection", connected)
    stub.replies += [Reply(), Reply(hang_before_headers=True)]
    answer(client, stub.url)
    call = ModelCall()
    threading.Timer(0.2, call.stop).start()
    with pytest.raises(AnswerStopped):
        answer(client, stub.url, call)
    assert len(made) == 1


def test_who_stops_an_answer_that_is_whole_does_not_end_the_next_one(client: ModelClient, stub: StubModel) -> None:
    gate, first, texts = threading.Event(), ModelCall(), []
    stub.replies += [Reply("One."), Reply("Two.", gate=gate)]
    answer(client, stub.url, first)
    second = threading.Thread(target=lambda: texts.append(answer(client, stub.url)))
    second.start()
    until(lambda: len(stub.requests) == 2)
    first.stop()
    gate.set()
    second.join()
    assert texts == ["Two."]
    assert len({seen.port for seen in stub.requests}) == 1


def test_a_connection_that_was_closed_meanwhile_is_replaced(client: ModelClient) -> None:
    # The second request is taken, and the connection closed instead of an answer.
    endpoints = Endpoints([WHOLE, GONE], [WHOLE])
    assert [answer(client, endpoints.url) for _ in range(2)] == ["Geese.", "Geese."]
    endpoints.join()
    assert endpoints.asked == [(0, 0), (0, 1), (1, 0)]


def test_an_answer_that_had_begun_is_not_asked_for_again(client: ModelClient) -> None:
    endpoints = Endpoints([WHOLE, b"HTTP/1.1 2"])
    answer(client, endpoints.url)
    with pytest.raises(ModelError):
        answer(client, endpoints.url)
    endpoints.join()
    assert endpoints.asked == [(0, 0), (0, 1)]


@pytest.mark.parametrize("head", [b"", b"Connection: close\r\n"])
@pytest.mark.parametrize("surplus", [WHOLE, b"HTTP/1.1 200 OK\r\n", b"}"])
def test_what_nobody_asked_for_is_nobodys_answer(client: ModelClient, surplus: bytes, head: bytes) -> None:
    whole = WHOLE.replace(b"Content-Length", head + b"Content-Length")
    endpoints = Endpoints([whole + surplus], [WHOLE])
    for _ in range(2):
        assert answer(client, endpoints.url) == "Geese."
    endpoints.join()
    assert endpoints.asked == [(0, 0), (1, 0)]
