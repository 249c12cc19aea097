"""A turn that is being answered in this process: what is committed of it, who waits for more, and how to stop it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from rag_assistant.collaborators import Call
from rag_assistant.records import Event

SECONDS_BETWEEN_HEARTBEATS = 15.0


class LiveTurn:
    """Hands what was committed to everyone who follows. Every follower sees the same text in the same order."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._changed = threading.Condition()
        self._state: Event | None = None
        self._start: Event | None = None
        self._parts: list[str] = []
        self._length = 0
        self._last: Event | None = None
        self._version = 0

    @property
    def length(self) -> int:
        """How many characters of the answer are shown."""
        return self._length

    def tell_state(self, state: Event) -> None:
        """Show what is awaited before the answer begins."""
        with self._changed:
            self._state = state
            self._tell()

    def begin(self, start: Event) -> None:
        """Show what is known before the first text."""
        with self._changed:
            self._start = start
            self._tell()

    def add(self, text: str) -> None:
        """Show text that has been committed."""
        with self._changed:
            self._parts.append(text)
            self._length += len(text)
            self._tell()

    def finish(self, last: Event) -> None:
        """Show the last event; nobody waits any more."""
        with self._changed:
            self._last = last
            self._tell()

    def text(self) -> str:
        """Return the whole text so far."""
        return "".join(self._parts)

    def follow(self, after: int = 0) -> Iterator[Event | None]:
        """Yield the events of the answer from character ``after`` on, to its end; ``None`` where nothing happens long.

        What came in between two reads comes as one event.
        """
        seen, taken, position = 0, 0, 0
        state: Event | None = None
        start: Event | None = None
        while True:
            with self._changed:
                heard = self._wait_for_more_than(seen)
                seen = self._version
                news = [event for event, old in ((self._state, state), (self._start, start)) if event is not old]
                state, start = self._state, self._start
                text, taken = "".join(self._parts[taken:]), len(self._parts)
                last = self._last
            if not heard:
                yield None
            yield from news
            unseen = text[max(0, after - position) :]
            position += len(text)
            if unseen:
                yield Event("token", {"text": unseen}, position)
            if last is not None:
                yield last
                return

    def _wait_for_more_than(self, version: int) -> bool:
        """Wait for a change behind ``version``; return False if none came before the next heartbeat."""
        return self._changed.wait_for(lambda: self._version != version, SECONDS_BETWEEN_HEARTBEATS)

    def _tell(self) -> None:
        self._version += 1
        self._changed.notify_all()


class LiveTurns:
    """The turns that run in this process, at most ``limit`` at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._turns: dict[int, LiveTurn] = {}
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

    def leave(self, turn_id: int) -> None:
        """Free the place of a turn that ended."""
        with self._lock:
            self._turns.pop(turn_id, None)

    def get(self, turn_id: int) -> LiveTurn | None:
        """Return a running turn."""
        return self._turns.get(turn_id)

    def all(self) -> list[LiveTurn]:
        """Return every running turn."""
        with self._lock:
            return list(self._turns.values())
