"""Server-sent events (WHATWG HTML, section 9.2): the streaming twin of the JSON answer, with heartbeats."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from rag_assistant.records import Event
from rag_assistant.records.errors import Overloaded, ServerEnding
from rag_assistant.web.markdown.blocks import Blocks

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
HEARTBEAT = b": still here\n\n"
MIN_PAUSE_SECONDS = 0.04


class Readers:
    """Limits how many connections wait for answers at once; each holds a thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._closed = False
        self.waiting = 0

    @contextmanager
    def place(self) -> Iterator[ExitStack]:
        """Take a place, and give what releases it at the end, unless a stream takes that over with ``pop_all``.

        Raises Overloaded if there is none, ServerEnding during shutdown.
        """
        with self._lock:
            if self._closed:
                raise ServerEnding
            if self.waiting >= self._limit:
                raise Overloaded(self._limit)
            self.waiting += 1
        with ExitStack() as leaving:
            leaving.callback(self._leave)
            yield leaving

    def close(self) -> None:
        """Refuse new connections: the server is shutting down."""
        self._closed = True

    def _leave(self) -> None:
        with self._lock:
            self.waiting -= 1


def frame(event: Event | None) -> bytes:
    """Return an event as bytes, a comment for ``None``; its id is the position in the answer."""
    if event is None:
        return HEARTBEAT
    position = "" if event.position is None else f"id: {event.position}\n"
    return f"event: {event.name}\n{position}data: ".encode() + msgspec.json.encode(event.data) + b"\n\n"


def drawn_frames(events: Iterator[Event | None], blocks: Blocks) -> Iterator[bytes]:
    """Yield frames of an answer, from its beginning, with HTML instead of text: ``keep`` blocks stay, ``html`` follows.

    Rendering sets the pace, so that a long answer doesn't use up a core.
    """
    for event in events:
        if event is None or event.name != "token":
            yield frame(event)
            continue
        began = time.monotonic()
        keep, html = blocks.add(event.data["text"])
        yield frame(Event("token", {"keep": keep, "html": html}, event.position))
        time.sleep(max(MIN_PAUSE_SECONDS, 5 * (time.monotonic() - began)))


def collect(events: Iterator[Event | None]) -> dict[str, Any]:
    """Return the data of the last event, which is the JSON answer."""
    last = deque(filter(None, events), maxlen=1)
    return last[0].data if last else {}
