"""What one person occupies of a server at one moment: threads are for all, and nobody may hold them all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal

from rag_assistant.records.errors import LimitReached

# Reading is quick, an upload is hashed and kept. What waits is an answer, which others have limits for.
Kind = Literal["reading", "upload", "waiting"]
# Of the spare threads of the server, and of one for each running answer.
MAX_PLACES: dict[Kind, int] = {"reading": 16, "upload": 4, "waiting": 32}
RETRY_SECONDS = 1.0


class Places:
    """The places of one person."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[Kind] = Counter()

    def take(self, kind: Kind) -> Callable[[], None]:
        """Take a place and return what gives it back. Raises LimitReached."""
        with self._lock:
            if self._taken[kind] >= MAX_PLACES[kind]:
                raise LimitReached(f"{MAX_PLACES[kind]} requests of yours are under way already", RETRY_SECONDS)
            self._taken[kind] += 1
        return lambda: self._give_back(kind)

    def _give_back(self, kind: Kind) -> None:
        with self._lock:
            self._taken[kind] -= 1
