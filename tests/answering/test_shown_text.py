"""What is committed and shown of many answers whose text arrives together."""

import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager

import pytest
from sqlalchemy import Connection, update

from rag_assistant.answering.stream import LiveTurn
from rag_assistant.answering.writer import AnswerWriter, ShownText
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.pump import StreamPump, TextSink
from rag_assistant.records import Question
from rag_assistant.records.errors import AnswerTakenOver, StorageDamaged, StorageFailed
from rag_assistant.storage.conversations.answer_log import AnswerLog
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import turns
from tests.conftest import both_engines


class Store:
    """Stores over a database, with the threads that committed text in it; ``failures`` are met first."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.turns = TurnStore(self.database, "here", str.lower)
        self.writer = AnswerWriter(self.turns, AnswerLog(self.database, "here"))
        self.committed_by: list[str] = []
        self.failures: list[Exception] = []
        self._write = self.database.write
        self.database.write = self._counting  # type: ignore[method-assign, assignment]

    def _counting(self, *, forced: bool = True) -> AbstractContextManager[Connection]:
        if not forced:
            self.committed_by.append(threading.current_thread().name)
            if self.failures:
                raise self.failures.pop()
        return self._write(forced=forced)


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)


class Body:
    """A body that ends with a full stop."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_complete = False

    def read(self) -> bytes | None:
        piece = self.connection.recv(1000)
        self.is_complete = piece.endswith(b".")
        return piece


class LateBody(Body):
    """One of which nothing is there when it is first looked at, by its own thread."""

    _looked_at = False

    def read(self) -> bytes | None:
        if self._looked_at:
            return super().read()
        self._looked_at = True
        raise BlockingIOError


class Answer:
    """A turn whose answer comes from ``far``; ``ended`` has what its own thread met."""

    def __init__(self, store: Store, pump: StreamPump) -> None:
        self.turn, _ = store.turns.accept(Question("Why?"), "Why?")
        self.live = LiveTurn(ModelCall())
        self._text = ShownText(store.writer, self.turn, self.live, lambda _: False)
        self._near, self.far = socket.socketpair()
        self.ended: Future[None] = Future()
        threading.Thread(target=self._run, args=(pump,), name=f"turn {self.turn.id}", daemon=True).start()

    def _run(self, pump: StreamPump) -> None:
        try:
            pump.run(Body(self._near), lambda piece: self._text.take(piece.decode()), self._text)
        except Exception as error:  # noqa: BLE001 - told to who waits
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)
        finally:
            self._near.close()
            self.far.close()


class Busy(TextSink):
    """Keeps the thread of all streams busy until it may go on."""

    def __init__(self, pump: StreamPump) -> None:
        super().__init__()
        self._began, self.may_go_on = threading.Event(), threading.Event()
        near, far = socket.socketpair()

        def run() -> None:
            pump.run(LateBody(near), lambda piece: self.take(piece.decode()), self)
            near.close()
            far.close()

        threading.Thread(target=run, daemon=True).start()
        far.send(b"x.")
        assert self._began.wait(10)

    def settle(self) -> None:
        self._began.set()
        assert self.may_go_on.wait(10)


def begin(answers: list[Answer]) -> None:
    """Let the first word of some answers be shown."""
    for answer in answers:
        answer.far.send(b"So")
    for answer in answers:
        followed = answer.live.follow()
        assert any(event is not None and event.data.get("text") == "So" for event in followed)


def end_together(store: Store, pump: StreamPump, answers: list[Answer], failures: Sequence[Exception] = ()) -> None:
    """Let the rest of some answers arrive while the thread of all streams is busy."""
    busy = Busy(pump)
    store.committed_by.clear()
    store.failures.extend(failures)
    for answer in answers:
        answer.far.send(b" it is.")
    busy.may_go_on.set()


def texts(store: Store, answer: Answer) -> tuple[str, str]:
    """Return what was shown of an answer, and what is kept."""
    return answer.live.text(), store.turns.get(answer.turn.id).answer


@both_engines
@pytest.mark.parametrize("count", [2, 40])
def test_texts_that_arrive_together_are_committed_together(store: Store, count: int) -> None:
    pump = StreamPump()
    answers = [Answer(store, pump) for _ in range(count)]
    begin(answers)
    end_together(store, pump, answers)
    for answer in answers:
        answer.ended.result(10)
        assert texts(store, answer) == ("So it is.", "So it is.")
    assert store.committed_by == ["streams"]


@both_engines
def test_an_answer_that_is_not_ours_any_more_ends_alone(store: Store) -> None:
    pump = StreamPump()
    answers = [Answer(store, pump) for _ in range(3)]
    begin(answers)
    lost, *others = answers
    with store.database.write() as connection:
        connection.execute(update(turns).where(turns.c.id == lost.turn.id).values(owner="elsewhere"))
    end_together(store, pump, answers)
    with pytest.raises(AnswerTakenOver):
        lost.ended.result(10)
    assert texts(store, lost) == ("So", "So")
    for answer in others:
        answer.ended.result(10)
        assert texts(store, answer) == ("So it is.", "So it is.")


def test_a_commit_that_fails_is_tried_again_by_the_thread_of_each_answer(store: Store) -> None:
    pump = StreamPump()
    answers = [Answer(store, pump) for _ in range(3)]
    begin(answers)
    end_together(store, pump, answers, [StorageFailed("The disk is full.")])
    for answer in answers:
        answer.ended.result(10)
        assert texts(store, answer) == ("So it is.", "So it is.")
    assert store.committed_by[0] == "streams"
    assert set(store.committed_by[1:]) <= {f"turn {answer.turn.id}" for answer in answers}


def test_a_commit_that_cannot_succeed_is_told_to_its_answers_and_nothing_of_it_is_shown(store: Store) -> None:
    pump = StreamPump()
    answers = [Answer(store, pump) for _ in range(3)]
    begin(answers)
    end_together(store, pump, answers, [StorageDamaged("The database is damaged.")] * 10)
    for answer in answers:
        with pytest.raises(StorageDamaged):
            answer.ended.result(10)
        assert answer.live.text() == "So"
    store.failures.clear()
    later = Answer(store, pump)
    begin([later])
    end_together(store, pump, [later])
    later.ended.result(10)
    assert texts(store, later) == ("So it is.", "So it is.")
