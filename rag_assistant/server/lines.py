"""Who sends many requests at once waits behind themselves, and nobody else does.

A thread for each request would let whoever sends the most take the most of the processor. So the requests of one
session or token stand in a line, of which one at a time is begun. A line that does not get empty rests after each of
their requests while somebody else is there: the interpreter runs one thread at a time, so others would wait for it. Who
shows neither session nor token is in no line.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from msgspec import Struct, field

MAX_BEGINNING = 1
# A request that has not begun to answer by then lets the next one begin.
MAX_BEGINNING_SECONDS = 0.5
# More than one person's places, so that a program that asks side by side is not refused here.
MAX_WAITING = 64
# What a page asks for when it is opened is through by then, and never rests.
MAX_BURST_SECONDS = 0.5
# How many times as long as the last request took: so one of theirs is under way for a seventh of the time at most
# (docs/benchmarks.md, i).
REST_FACTOR = 6
MAX_REST_SECONDS = 0.5
# Who sent something is there for so long.
PRESENCE_SECONDS = 5.0
LOOK_SECONDS = 0.1
WHO = re.compile(
    rb"\r\n(?:authorization:[ \t]*bearer[ \t]+(rag_[\w-]+)|cookie:(?:[^\r]*;)?[ \t]*(?:__Host-)?session=([\w-]+))",
    re.IGNORECASE,
)


class Line(Struct):
    """Since when there is somebody in it; when each of those that are being begun came to it, and who waits."""

    since: float
    beginning: dict[Any, float] = field(default_factory=dict)
    waiting: deque[Any] = field(default_factory=deque)
    rests_until: float = 0.0


class Lines:
    """The lines of all: each who sends has two, one of them for large bodies, which come as slowly as they like.

    Used by one thread; what stands in a line is anything that can be hashed.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[object, bool], Line] = {}
        self._line_of: dict[Any, tuple[object, bool]] = {}
        # Who sent something last, and who did before that was somebody else; each with the time.
        self._newest: tuple[object, float] = (None, float("-inf"))
        self._newest_of_others: tuple[object, float] = self._newest

    def is_full(self, who: object, large: bool = False) -> bool:
        """Tell whether nobody more may wait in a line."""
        line = self._lines.get((who, large))
        return line is not None and len(line.waiting) >= MAX_WAITING

    def join(self, who: object, request: Any, now: float, *, large: bool = False) -> list[Any]:
        """Put a request at the end of a line; return those that are to be begun."""
        if who != self._newest[0]:
            self._newest_of_others = self._newest
        self._newest = who, now
        key = who, large
        self._lines.setdefault(key, Line(now)).waiting.append(request)
        self._line_of[request] = key
        return self._begin(key, now)

    def leave(self, request: Any, now: float) -> list[Any]:
        """Take out a request that has begun to answer, if it still stands in a line; return those to be begun."""
        key = self._line_of.pop(request, None)
        if key is None:
            return []
        took = now - self._lines[key].beginning.pop(request)
        if not self._is_alone(key[0], now):
            self._rest(key[0], now, min(REST_FACTOR * took, MAX_REST_SECONDS))
        return self._begin(key, now)

    def look(self, now: float) -> list[Any]:
        """Let go on what has rested, and what waits behind a request that takes too long; return those to be begun."""
        late = [
            request
            for line in self._lines.values()
            if line.waiting
            for request, since in line.beginning.items()
            if now - since >= MAX_BEGINNING_SECONDS
        ]
        begun = [one for request in late for one in self.leave(request, now)]
        return begun + [one for key in list(self._lines) for one in self._begin(key, now)]

    def seconds_to_look(self, now: float) -> float | None:
        """Return when to look next, ``None`` if nobody waits."""
        waits = [line.rests_until - now for line in self._lines.values() if line.waiting]
        return min((left if 0 < left < LOOK_SECONDS else LOOK_SECONDS for left in waits), default=None)

    def _is_alone(self, who: object, now: float) -> bool:
        """Tell whether nobody else has sent anything for a while."""
        _, last = self._newest_of_others if who == self._newest[0] else self._newest
        return now - last > PRESENCE_SECONDS

    def _rest(self, who: object, now: float, seconds: float) -> None:
        """Let both lines of somebody rest, unless they were empty a moment ago."""
        for large in (False, True):
            line = self._lines.get((who, large))
            if line is not None and now - line.since > MAX_BURST_SECONDS:
                line.rests_until = max(line.rests_until, now + seconds)

    def _begin(self, key: tuple[object, bool], now: float) -> list[Any]:
        line = self._lines[key]
        begun = []
        while line.waiting and len(line.beginning) < MAX_BEGINNING and now >= line.rests_until:
            request = line.waiting.popleft()
            line.beginning[request] = now
            begun.append(request)
        if not line.beginning and not line.waiting:
            del self._lines[key]
        return begun


def who_sends(head: bytes) -> bytes | None:
    """Return the session or token that the head of a request shows, ``None`` if it shows none."""
    found = WHO.search(head)
    return None if found is None else found[1] or found[2]
