"""Many streams, one thread: in which order it works, and what it leaves to the thread of each answer."""

import selectors
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from rag_assistant.llm.pump import StreamPump, TextSink

PUMP = "streams"


def until(event: threading.Event) -> None:
    assert event.wait(10), "it never came"


class Sink(TextSink):
    """Takes note of what is done, in which thread; ``came`` is set at each text that is settled."""

    def __init__(self, done: list[tuple[str, str, str]]) -> None:
        super().__init__()
        self._done = done
        self.came = threading.Event()

    def take(self, text: str) -> None:
        super().take(text)
        self._done.append(("take", text, threading.current_thread().name))

    def settle(self) -> None:
        self._done.append(("settle", self.text, threading.current_thread().name))
        self.came.set()

    def settle_patiently(self) -> None:
        if self.text:  # What came before the pump watched.
            self.came.set()


class Blocking(Sink):
    """Keeps the thread of all streams busy from its second text on, until it may go on."""

    def __init__(self) -> None:
        super().__init__([])
        self.may_go_on = threading.Event()

    def settle(self) -> None:
        super().settle()
        if len(self.text) > 1:
            until(self.may_go_on)


class Body:
    """A body that ends with its connection."""

    is_complete = False

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def read(self) -> bytes | None:
        return self.connection.recv(1000) or None


class Streaming:
    """A stream whose other end is ``far``; ``ended`` has what its own thread met."""

    def __init__(self, pump: StreamPump, sink: TextSink, feed: Callable[[bytes], None] | None = None) -> None:
        near, self.far = socket.socketpair()
        self.ended: Future[None] = Future()
        body = Body(near)

        def run() -> None:
            try:
                pump.run(body, feed or (lambda piece: sink.take(piece.decode())), sink)
            except Exception as error:  # noqa: BLE001 - told to who waits
                self.ended.set_exception(error)
            else:
                self.ended.set_result(None)
            finally:
                near.close()

        threading.Thread(target=run, name="own", daemon=True).start()

    def end(self) -> None:
        """Let the other end close, and wait for what its own thread met."""
        self.far.close()
        self.ended.result(10)


@pytest.fixture
def pump() -> StreamPump:
    return StreamPump()


def begun(pump: StreamPump, sink: Sink) -> Streaming:
    """Return a stream whose first text has come."""
    stream = Streaming(pump, sink)
    stream.far.send(b"a")
    until(sink.came)
    sink.came.clear()
    return stream


def test_whatever_arrived_is_taken_from_all_streams_before_any_is_settled(pump: StreamPump) -> None:
    done: list[tuple[str, str, str]] = []
    sinks = [Sink(done) for _ in range(20)]
    streams = [begun(pump, sink) for sink in sinks]
    busy = Blocking()
    blocking = begun(pump, busy)
    blocking.far.send(b"b")
    until(busy.came)
    done.clear()
    for stream in streams:
        stream.far.send(b"b")
    busy.may_go_on.set()
    for sink in sinks:
        until(sink.came)
    assert [what for what, *_ in done] == ["take"] * 20 + ["settle"] * 20
    for stream in [*streams, blocking]:
        stream.end()


def test_no_other_thread_wakes_for_a_token(pump: StreamPump) -> None:
    done: list[tuple[str, str, str]] = []
    sink = Sink(done)
    stream = begun(pump, sink)
    done.clear()
    for n in range(50):
        sink.came.clear()
        stream.far.send(b"%d" % n)
        until(sink.came)
    assert {thread for *_, thread in done} == {PUMP}
    assert [text for what, text, _ in done if what == "take"] == [str(n) for n in range(50)]
    stream.end()


def test_a_stream_that_stalls_and_one_that_floods_hold_up_no_other(pump: StreamPump) -> None:
    stalled = begun(pump, Sink([]))
    flooded = Streaming(pump, TextSink(), lambda _: None)
    ended = threading.Event()

    def flood() -> None:
        while not ended.is_set():
            flooded.far.send(b"x" * 1000)

    flooding = threading.Thread(target=flood)
    flooding.start()
    sink = Sink([])
    stream = begun(pump, sink)
    for n in range(20):
        sink.came.clear()
        stream.far.send(b"%d" % n)
        until(sink.came)
    ended.set()
    flooding.join(10)
    for one in (stalled, flooded, stream):
        one.end()


def test_what_cannot_be_settled_is_left_to_its_own_thread_and_the_stream_goes_on(pump: StreamPump) -> None:
    class Full(Sink):
        patient: tuple[str, str] | None = None

        def settle(self) -> None:
            if self.text == "ab":
                raise OSError("the disk is full")
            super().settle()

        def settle_patiently(self) -> None:
            super().settle_patiently()
            if self.text == "ab":
                self.patient = (self.text, threading.current_thread().name)

    sink, other = Full([]), Sink([])
    stream, beside = begun(pump, sink), begun(pump, other)
    stream.far.send(b"b")
    until(sink.came)
    sink.came.clear()
    stream.far.send(b"c")
    until(sink.came)
    assert sink.patient == ("ab", "own")
    assert sink.text == "abc"
    beside.far.send(b"b")
    until(other.came)
    for one in (stream, beside):
        one.end()


def test_what_goes_wrong_with_a_stream_is_raised_in_its_own_thread_and_ends_no_other(pump: StreamPump) -> None:
    def refuse(_: bytes) -> None:
        raise ValueError("that is no answer")

    other = Sink([])
    beside = begun(pump, other)
    refused = Streaming(pump, TextSink(), refuse)
    refused.far.send(b"a")
    with pytest.raises(ValueError, match="that is no answer"):
        refused.ended.result(10)
    refused.far.close()
    beside.far.send(b"b")
    until(other.came)
    beside.end()


def test_streams_outlive_the_thread_that_reads_them(pump: StreamPump, monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = [Sink([]) for _ in range(3)]
    streams = [begun(pump, sink) for sink in sinks]
    select = selectors.DefaultSelector.select
    failed = threading.Event()

    def fail_once(self: selectors.DefaultSelector, timeout: float | None = None) -> Any:
        ready = select(self, timeout)
        if not failed.is_set():
            failed.set()
            raise MemoryError
        return ready

    monkeypatch.setattr(selectors.DefaultSelector, "select", fail_once)
    for stream, sink in zip(streams, sinks, strict=True):
        stream.far.send(b"b")
        until(sink.came)
        sink.came.clear()
    until(failed)
    for stream, sink in zip(streams, sinks, strict=True):
        stream.far.send(b"c")
        until(sink.came)
        stream.end()
    assert [sink.text for sink in sinks] == ["abc"] * 3


def test_what_came_before_a_stream_broke_is_settled_first(pump: StreamPump) -> None:
    done: list[tuple[str, str, str]] = []
    sink = Sink(done)
    stream = begun(pump, sink)
    stream.far.send(b"b")
    stream.end()
    assert [text for what, text, _ in done if what == "take"] == ["a", "b"]
    assert done[-1][:2] == ("settle", "ab")
