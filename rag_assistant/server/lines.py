"""Who sends many requests at once waits behind themselves, and nobody else does.

A thread for each request would let whoever sends the most take the most of the processor. So the requests of one
session or token stand in a line, of which one at a time is begun. Who shows neither is in no line.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any

MAX_BEGINNING = 1
# A request that has not begun to answer by then lets the next one begin.
MAX_BEGINNING_SECONDS = 0.5
# More than one person's places, so that a program that asks side by side is not refused here.
MAX_WAITING = 64
WHO = re.compile(
    rb"\r\n(?:authorization:[ \t]*bearer[ \t]+(rag_[\w-]+)|cookie:(?:[^\r]*;)?[ \t]*(?:__Host-)?session=([\w-]+))",
    re.IGNORECASE,
)


@dataclass
class Line:
    """When each of those that are being begun came to it, and who waits."""

    beginning: dict[Any, float] = field(default_factory=dict)
    waiting: deque[Any] = field(default_factory=deque)


class Lines:
    """The lines of all. Used by one thread; what stands in a line is anything that can be hashed."""

    def __init__(self) -> None:
        self._lines: dict[object, Line] = {}
        self._line_of: dict[Any, object] = {}

    def is_full(self, who: object) -> bool:
        """Tell whether nobody more may wait in a line."""
        return who in self._lines and len(self._lines[who].waiting) >= MAX_WAITING

    def join(self, who: object, request: Any, now: float) -> list[Any]:
        """Put a request at the end of a line; return those that are to be begun."""
        line = self._lines.setdefault(who, Line())
        line.waiting.append(request)
        self._line_of[request] = who
        return self._begin(who, now)

    def leave(self, request: Any, now: float) -> list[Any]:
        """Take out a request that has begun to answer, if it still stands in a line; return those to be begun."""
        who = self._line_of.pop(request, None)
        if who is None:
            return []
        del self._lines[who].beginning[request]
        return self._begin(who, now)

    def overdue(self, now: float) -> list[Any]:
        """Take out what takes too long to begin; return those to be begun."""
        late = [
            request
            for line in self._lines.values()
            if line.waiting
            for request, since in line.beginning.items()
            if now - since >= MAX_BEGINNING_SECONDS
        ]
        return [begun for request in late for begun in self.leave(request, now)]

    def is_waited_in(self) -> bool:
        """Tell whether anybody waits."""
        return any(line.waiting for line in self._lines.values())

    def _begin(self, who: object, now: float) -> list[Any]:
        line = self._lines[who]
        begun = []
        while line.waiting and len(line.beginning) < MAX_BEGINNING:
            request = line.waiting.popleft()
            line.beginning[request] = now
            begun.append(request)
        if not line.beginning:
            del self._lines[who]
        return begun


def who_sends(head: bytes) -> bytes | None:
    """Return the session or token that the head of a request shows, ``None`` if it shows none."""
    found = WHO.search(head)
    return None if found is None else found[1] or found[2]
