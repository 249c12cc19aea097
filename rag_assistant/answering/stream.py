"""A turn that is being answered in this process: what is committed of it, who waits for more, and how to stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from rag_assistant.records import Event

if TYPE_CHECKING:
    from rag_assistant.llm.calls import ModelCall

HEARTBEAT_INTERVAL_SECONDS = 15.0


# Takes text to a reader past the thread that follows for it, without waiting; returns what is left to that thread.
Send = Callable[[Event], Event | None]


class _Follower:
    """Events for a thread that follows. While that waits, and ``may_send``, text goes past it to its reader."""

    def __init__(self, send: Send | None) -> None:
        self._send = send
        self.queue: SimpleQueue[Event] = SimpleQueue()
        self.may_send = False

    def put(self, event: Event) -> None:
        """Hand over an event; the lock of the turn is held."""
        left: Event | None = event
        if self.may_send and self._send is not None and event.name == "token":
            left = self._send(event)
        if left is not None:
            self.may_send = False
            self.queue.put(left)


class LiveTurn:
    """Hands what was committed to everyone who follows. Every follower sees the same text in the same order."""

    def __init__(self, call: ModelCall) -> None:
        self.call = call
        self._lock = threading.Lock()
        self._followers: list[_Follower] = []
        self._state: Event | None = None
        self._start: Event | None = None
        self._steps: list[Event] = []
        self._parts: list[str] = []
        self._last: Event | None = None
        self.length = 0
        self._opened = time.monotonic()
        self.first_text_seconds: float | None = None
        self.ended = threading.Event()

    def tell_state(self, state: Event) -> None:
        """Show what is awaited before the answer begins."""
        with self._lock:
            self._state = state
            self._hand_out(state)

    def begin(self, start: Event) -> None:
        """Show what is known before the first text; who has seen that already gets what changed as an ``update``."""
        with self._lock:
            known, self._state, self._start = self._start, None, start
            if start != known:
                self._hand_out(start if known is None else Event("update", start.data))

    def add_step(self, step: Event) -> None:
        """Show a tool call with its result, which has been committed."""
        with self._lock:
            self._steps.append(step)
            self._hand_out(step)

    def add(self, text: str) -> None:
        """Show text that has been committed; ``length`` is how many characters are shown."""
        with self._lock:
            if self.first_text_seconds is None:
                self.first_text_seconds = time.monotonic() - self._opened
            self._parts.append(text)
            self.length += len(text)
            self._hand_out(Event("token", {"text": text}, self.length))

    def finish(self, last: Event) -> None:
        """Show the last event; nobody waits any more."""
        with self._lock:
            self._last = last
            self._hand_out(last)
        self.ended.set()

    def stop(self) -> None:
        """End the answer because nobody wants it any more."""
        self.call.stop()

    def text(self) -> str:
        """Return the whole text so far."""
        return "".join(self._parts)

    def follow(
        self,
        after: int = 0,
        heartbeat_seconds: float = HEARTBEAT_INTERVAL_SECONDS,
        send: Send | None = None,
    ) -> Iterator[Event | None]:
        """Yield the events of the answer from character ``after`` on, to its end; ``None`` where nothing happens long.

        What came in between two reads comes as one event. Behind the first that is more than a ``state``, text that
        ``send`` takes is not yielded.
        """
        follower = _Follower(send)
        with self._lock:
            token = Event("token", {"text": "".join(self._parts)}, self.length)
            so_far = [self._state, self._start, *self._steps, token, self._last]
            ended = self._last is not None
            self._followers.append(follower)
        try:
            begun = False
            for event in _from(after, [event for event in so_far if event is not None]):
                yield event
                begun = event.name != "state"
            while not ended:
                with self._lock:
                    follower.may_send = begun and self.length >= after and follower.queue.empty()
                news = _waiting_in(follower.queue, heartbeat_seconds)
                with self._lock:
                    follower.may_send = False
                    if not news and not follower.queue.empty():
                        continue  # It came as the wait was over: a heartbeat must not cut what is half sent.
                ended = bool(news) and news[-1].name in ("end", "error")
                yield from _from(after, news) if news else (None,)
                begun = begun or not news or news[-1].name != "state"
        finally:
            with self._lock:
                self._followers.remove(follower)

    def _hand_out(self, event: Event) -> None:
        """Give an event to all who follow; the lock is held."""
        for follower in self._followers:
            follower.put(event)


def _waiting_in(queue: SimpleQueue[Event], timeout_seconds: float) -> list[Event]:
    """Return what waits in a queue, after waiting for it if need be; an empty list if nothing comes for long.

    Neighbouring pieces of text become one, and nothing stands behind a last event.
    """
    news: list[Event] = []
    try:
        news.append(queue.get(timeout=timeout_seconds))
        while True:
            event = queue.get_nowait()
            if event.name == "token" and news[-1].name == "token":
                text = news.pop().data["text"] + event.data["text"]
                event = Event("token", {"text": text}, event.position)
            news.append(event)
    except Empty:
        return news


def _from(after: int, events: Iterable[Event]) -> Iterator[Event]:
    """Yield events without the first ``after`` characters of the answer."""
    for event in events:
        if event.name != "token" or event.position is None:
            yield event
            continue
        text = event.data["text"]
        unseen = text[max(0, after - (event.position - len(text))) :]
        if unseen:
            yield event if len(unseen) == len(text) else Event("token", {"text": unseen}, event.position)


class LiveTurns:
    """The turns that run in this process, at most ``limit`` at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._turns: dict[int, LiveTurn] = {}
        # Their end could not be kept, so that the database says that they run.
        self._lost: dict[int, LiveTurn] = {}
        self._reserved = 0

    def reserve(self) -> bool:
        """Take a place for a turn that is about to be accepted; return False if there is none."""
        with self._lock:
            if len(self._turns) + self._reserved >= self.limit:
                return False
            self._reserved += 1
            return True

    def give_back(self) -> None:
        """Return a place that was not used."""
        with self._lock:
            self._reserved -= 1

    def enter(self, turn_id: int, live: LiveTurn) -> None:
        """Use a reserved place."""
        with self._lock:
            self._reserved -= 1
            self._turns[turn_id] = live

    def leave(self, turn_id: int, live: LiveTurn, *, kept: bool) -> None:
        """Free the place of a turn that ended; a retry may have taken its number meanwhile."""
        with self._lock:
            if not kept:
                self._lost[turn_id] = live
            if self._turns.get(turn_id) is live:
                del self._turns[turn_id]

    def get(self, turn_id: int) -> LiveTurn | None:
        """Return a turn that runs, or one that ran and was not kept."""
        return self._turns.get(turn_id) or self._lost.get(turn_id)

    def all(self) -> list[LiveTurn]:
        """Return every running turn."""
        with self._lock:
            return list(self._turns.values())
