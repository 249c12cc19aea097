"""One thread that reads the streams of all answers as they arrive: a thread for each would wake for each token.

Reading and taking text wait for nothing. What waits, such as opening a request or trying a commit again, is done by the
thread that wants the answer; between the two it sleeps until its stream has ended.
"""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)

# After each round, what arrives within a tick is read, committed and shown together. It is long enough for some tokens
# of all streams, or of one that is fast, and too short to be seen; what comes after a pause waits for nothing.
MIN_TICK_SECONDS = 0.005
MAX_TICK_SECONDS = 0.02
TICK_SECONDS_OF_ONE_STREAM = 0.4
# TLS gives one record at a time, and a token takes one or several: so many are read of a stream in a round.
MAX_RECORDS = 100


class TextSink:
    """Takes the text of an answer as it comes; collects it, and nothing else."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The whole text so far."""
        return "".join(self._pieces)

    def take(self, text: str) -> None:
        """Take text without waiting for anything."""
        self._pieces.append(text)

    def settle(self) -> None:
        """Do what is to be done about what was taken; the other streams of a round have given theirs by then.

        Whatever it raises, ``settle_patiently`` follows.
        """

    def settle_patiently(self) -> None:
        """Do the same in the thread that waits for the answer; what it raises is raised there."""


class Arriving(Protocol):
    """A body on its way."""

    connection: socket.socket
    is_complete: bool

    def read(self) -> bytes | None:
        """Return the next piece, ``None`` at the end. Raises BlockingIOError for nothing yet."""


class _Stream:
    """A body that is read, and who gets what is in it. ``given_back``: its own thread goes on."""

    def __init__(self, body: Arriving, feed: Callable[[bytes], None], sink: TextSink) -> None:
        self.connection = body.connection
        self.given_back = threading.Event()
        self._body = body
        self._feed = feed
        self._sink = sink
        self._max_pieces = MAX_RECORDS if isinstance(body.connection, ssl.SSLSocket) else 1
        self._error: Exception | None = None
        self._ended = False
        self.goes_on = True  # Nothing is left to its own thread.

    def read(self) -> None:
        """Take what has arrived, if anything, at once: a sink is settled after each text that it takes."""
        arrived = b""
        try:
            for _ in range(self._max_pieces):
                piece = self._body.read()
                if piece is not None:
                    arrived += piece
                if piece is None or self._body.is_complete:
                    self._ended, self.goes_on = True, False
                    break
        except BlockingIOError:
            pass
        except Exception as error:  # noqa: BLE001 - its own thread raises it
            self._error, self.goes_on = error, False
        try:
            if arrived:
                self._feed(arrived)
        except Exception as error:  # noqa: BLE001 - the same, and it came before the other
            self._error, self.goes_on = error, False

    def settle(self) -> None:
        """Settle what was taken, or leave that to its own thread."""
        try:
            self._sink.settle()
        except Exception as error:  # noqa: BLE001 - its own thread meets it again
            log.info("What a model said is left to the thread of its answer: %s", error)
            self.goes_on = False

    def conclude(self) -> bool:
        """Do in its own thread what is left to it; return whether the stream has ended. Raises what was met."""
        self._sink.settle_patiently()
        self.goes_on = True
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # Or what was read would be kept until the next collection of cycles.
        return self._ended

    def wait(self) -> None:
        """Wait until it is given back."""
        self.given_back.wait()
        self.given_back.clear()


class StreamPump:
    """Reads all streams of this process with one thread, which begins with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._selector: selectors.BaseSelector

    def run(self, body: Arriving, feed: Callable[[bytes], None], sink: TextSink) -> None:
        """Feed a body to its end as it arrives, and let ``sink`` settle what it took. Raises what they raise."""
        body.connection.setblocking(False)
        stream = _Stream(body, feed, sink)
        stream.read()  # What came with the head.
        while not stream.conclude():
            self._begin_watching(stream)
            stream.wait()

    def _begin_watching(self, stream: _Stream) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # A forked process has none.
                self._selector = selectors.DefaultSelector()
                self._thread = threading.Thread(target=self._pump, name="streams", daemon=True)
                self._thread.start()
            self._selector.register(stream.connection, selectors.EVENT_READ, stream)

    def _pump(self) -> None:
        try:
            while True:
                for given_back in self._round():
                    given_back.set()
                time.sleep(_tick_seconds(len(self._selector.get_map())))
        except Exception:
            log.exception("The thread that reads all streams failed; they go on with another one")
        with self._lock:
            self._thread = None
            streams: list[_Stream] = [key.data for key in self._selector.get_map().values()]
        for stream in streams:
            stream.given_back.set()

    def _round(self) -> list[threading.Event]:
        """Wait until anything arrives, read what has arrived, settle it, and return whose own threads go on.

        They are told when nothing here holds their streams any more, and what was read of them.
        """
        streams: list[_Stream] = [key.data for key, _ in self._selector.select()]
        for stream in streams:
            stream.read()
        for stream in streams:
            stream.settle()
        ended = [stream for stream in streams if not stream.goes_on]
        for stream in ended:
            self._selector.unregister(stream.connection)
        return [stream.given_back for stream in ended]


def _tick_seconds(streams: int) -> float:
    """Return how long to let more arrive before the next round."""
    return max(MIN_TICK_SECONDS, min(MAX_TICK_SECONDS, TICK_SECONDS_OF_ONE_STREAM / max(streams, 1)))
