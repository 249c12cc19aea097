"""Text on its way to a reader, past the thread that serves it."""

import json
import random
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPResponse
from queue import SimpleQueue

import pytest

from rag_assistant.answering import stream
from rag_assistant.answering.stream import LiveTurn, Send
from rag_assistant.llm.calls import ModelCall
from rag_assistant.records import Event
from rag_assistant.web.api.events import Direct, direct, frame

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Served:
    """A reader whose thread writes what it follows, as gunicorn does; ``woken`` are the events that it saw."""

    def __init__(self, live: LiveTurn, send: Send | None, straight: Direct, near: socket.socket) -> None:
        self.woken: list[str] = []
        self.waits = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(live, send, straight, near))
        self._thread.start()

    def _serve(self, live: LiveTurn, send: Send | None, straight: Direct, near: socket.socket) -> None:
        near.sendall(HEAD)
        for event in straight.finishing(self._noted(live.follow(0, 10.0, send))):
            data = frame(event)
            near.sendall(b"%X\r\n%b\r\n" % (len(data), data))
        near.sendall(b"0\r\n\r\n")

    def _noted(self, events: Iterator[Event | None]) -> Iterator[Event | None]:
        for event in events:
            self.woken.append(event.name if event else "heartbeat")
            yield event

    def end(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


def read_text(far: socket.socket) -> str:
    """Return the text of all tokens that a reader gets."""
    response = HTTPResponse(far)
    response.begin()
    blocks = response.read().decode().split("\n\n")
    tokens = [block for block in blocks if block.startswith("event: token")]
    return "".join(json.loads(block.split("data: ")[1])["text"] for block in tokens)


def begun(near: socket.socket) -> tuple[LiveTurn, Direct]:
    live = LiveTurn(ModelCall())
    live.begin(Event("start", {}, 0))
    return live, Direct(near, frame)


def test_the_thread_of_a_reader_sleeps_while_text_comes() -> None:
    near, far = socket.socketpair()
    with near, far:
        live, straight = begun(near)
        taken: list[str] = []
        may_send = threading.Event()

        def send(event: Event) -> Event | None:
            left = straight.send(event)
            taken.append(event.data["text"])
            may_send.set()
            return left

        served = Served(live, send, straight, near)
        while not may_send.wait(0.01):  # Until its thread waits.
            live.add("a")
        before = len(served.woken)
        for n in range(100):
            live.add(f"{n} ")
        live.finish(Event("end"))
        text = read_text(far)
        served.end()
    assert text == live.text()
    assert taken[-100:] == [f"{n} " for n in range(100)]
    assert served.woken[before:] == ["end"]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))])
def test_a_reader_who_is_slow_gets_everything_once(seed: int) -> None:
    chance = random.Random(seed)
    near, far = socket.socketpair()
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        live, straight = begun(near)
        left: list[str] = []

        def send(event: Event) -> Event | None:
            if chance.random() < 0.2:  # Part of it went out.
                data = frame(event)
                chunk = b"%X\r\n%b\r\n" % (len(data), data)
                cut = chance.randrange(1, len(chunk))
                try:
                    cut = near.send(chunk[:cut], socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return event
                rest: Event | None = Event("rest", {"bytes": chunk[cut:]})
            else:
                rest = straight.send(event)
            left.append(rest.name if rest else "nothing")
            return rest

        served = Served(live, send, straight, near)

        def speak() -> None:
            for n in range(3000):
                live.add(f"{n} ")
                if chance.random() < 0.3:
                    threading.Event().wait(0.0005)
            live.finish(Event("end"))

        speaking = threading.Thread(target=speak)
        speaking.start()
        text = read_text(far)
        speaking.join(20)
        served.end()
    assert text == live.text() == "".join(f"{n} " for n in range(3000))
    assert {"token", "rest", "nothing"} <= set(left)


def test_who_came_later_and_has_seen_more_gets_nothing_twice() -> None:
    live = LiveTurn(ModelCall())
    live.begin(Event("start", {}, 0))
    sent: list[str] = []

    def send(event: Event) -> None:
        sent.append(event.data["text"])

    followed = live.follow(4, 0.05, send)
    assert [next(followed), next(followed)] == [Event("start", {}, 0), None]
    live.add("abc")
    live.add("def")
    assert next(followed) == Event("token", {"text": "ef"}, 6)
    assert sent == []


def test_a_heartbeat_never_cuts_a_token_that_is_half_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    live, half = LiveTurn(ModelCall()), Event("rest", {"bytes": b"cd"})
    live.begin(Event("start", {}, 0))
    followed = live.follow(0, 0.05, lambda _token: half)
    assert next(followed) == Event("start", {}, 0)
    waiting_in = stream._waiting_in

    def too_late(queue: SimpleQueue[Event], timeout_seconds: float) -> list[Event]:
        """Wait in vain, while text comes just behind the wait."""
        monkeypatch.setattr(stream, "_waiting_in", waiting_in)
        live.add("abcd")
        return []

    monkeypatch.setattr(stream, "_waiting_in", too_late)
    assert next(followed) == half


@pytest.mark.parametrize("protocol", ["HTTP/1.0", "HTTP/1.1"])
def test_only_chunks_over_a_plain_socket_are_written_past_the_thread(protocol: str) -> None:
    near, far = socket.socketpair()
    with near, far:
        found = direct({"gunicorn.socket": near, "SERVER_PROTOCOL": protocol}, frame)
    assert (found is None) == (protocol == "HTTP/1.0")
    assert direct({"SERVER_PROTOCOL": protocol}, frame) is None
