"""What a token may cost, from the model's socket to the reader's: function calls, and commits."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from rag_assistant.answering.stream import LiveTurn
from rag_assistant.answering.writer import AnswerWriter, ShownText
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient
from rag_assistant.llm.endpoint import Deadlines, Endpoint
from rag_assistant.llm.pump import StreamPump
from rag_assistant.records import Event, ModelRequest, Question
from rag_assistant.storage.conversations.answer_log import AnswerLog
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.web.api.events import Direct, frame
from tests.web.conftest import until

STREAMS = 20
MAX_CALLS_OF_A_TOKEN = 27
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = ModelRequest(messages=({"role": "user", "content": "Why?"},))


def chunk(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    """Return a token as it comes over the wire."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    data = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


class Answers:
    """Answers under way, each with a model of its own that speaks when it is told to, and with a reader."""

    def __init__(self, database: Database, closing: ExitStack) -> None:
        self._turns = TurnStore(database, "here", str.lower)
        self._writer = AnswerWriter(self._turns, AnswerLog(database, "here"))
        self._client = ModelClient(lambda: Deadlines(60, 60, 60, 600))
        closing.callback(self._client.close)
        self._listener = closing.enter_context(socket.create_server(("127.0.0.1", 0), backlog=STREAMS))
        self._closing = closing
        self._models: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.lives: list[LiveTurn] = []

    def begin(self) -> None:
        """Begin an answer."""
        turn, _ = self._turns.accept(Question("Why?"), "Why?")
        live = LiveTurn(ModelCall())
        near, _far = map(self._closing.enter_context, socket.socketpair())
        straight = Direct(near, frame)
        self._start(lambda: list(straight.finishing(live.follow(0, 60, straight.send))))
        self._start(lambda: self._answer(live, ShownText(self._writer, turn, live, lambda _: False)))
        model, _ = self._listener.accept()
        self._models.append(self._closing.enter_context(model))
        model.recv(65536)
        model.sendall(HEAD + chunk({"content": "So"}))
        self.lives.append(live)

    def _answer(self, live: LiveTurn, sink: ShownText) -> None:
        host, port = self._listener.getsockname()
        self._client.stream(Endpoint(f"http://{host}:{port}/v1", None, "m", 1000), REQUEST, live.call, sink)
        live.finish(Event("end"))

    def _start(self, work: Callable[[], Any]) -> None:
        self._threads.append(threading.Thread(target=work, daemon=True))
        self._threads[-1].start()

    def say(self, piece: bytes) -> None:
        """Let all models say something, and wait until it has arrived."""
        for model in self._models:
            model.sendall(piece)
        pump = self._client._pump
        until(lambda: pump._thread is not None and len(pump._selector.select(0)) == STREAMS)

    def round(self) -> int:
        """Read, commit and show what has arrived; return how many functions of Python that calls."""
        count = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(note)
        ended = self._client._pump._round()
        sys.setprofile(None)
        for given_back in ended:
            given_back.set()
        return count

    def end(self) -> None:
        """Let all come to their end."""
        self.say(chunk({}, "stop") + b"0\r\n\r\n")
        self.round()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture
def answers(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    may_end = threading.Event()
    monkeypatch.setattr(StreamPump, "_pump", lambda _: may_end.wait())  # Its rounds are made by hand.
    with ExitStack() as closing:
        yield Answers(database, closing)
        may_end.set()


# PostgreSQL is asked through SQLAlchemy, which makes half as many calls again.
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_token_costs_few_calls_and_a_round_one_commit(
    answers: Answers, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(STREAMS):
        answers.begin()
    until(lambda: all(any(follower.may_send for follower in live._followers) for live in answers.lives))
    commits: list[str] = []
    commit_text = database.commit_text

    def count_commit(statement: str, values: Sequence[Any]) -> int:
        commits.append(statement)
        return commit_text(statement, values)

    monkeypatch.setattr(database, "commit_text", count_commit)
    answers.say(chunk({"content": " it"}))
    assert answers.round() / STREAMS <= MAX_CALLS_OF_A_TOKEN
    answers.say(chunk({"content": " is"}) * 3)  # What came together is one event, one row and one write.
    assert answers.round() / STREAMS <= MAX_CALLS_OF_A_TOKEN + 2 * 3
    assert len(commits) == 2
    answers.end()
    assert {live.text() for live in answers.lives} == {"So it" + " is" * 3}
