"""Connections that may carry another request: it is spared a look-up of the name and the greetings of TCP and TLS."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque

# What lies between forgets silent connections after minutes, without a word to either end.
MAX_IDLE_SECONDS = 30.0
MAX_KEPT = 32


class KeptConnections:
    """Connections to one endpoint that wait for their next request. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[tuple[float, socket.socket]] = deque()

    def take(self) -> socket.socket | None:
        """Return the one that was kept last, if it is young enough and the endpoint has not closed it."""
        while True:
            with self._lock:
                if not self._kept:
                    return None
                since, connection = self._kept.pop()
            if time.monotonic() - since < MAX_IDLE_SECONDS and not _has_news(connection):
                connection.settimeout(None)
                return connection
            connection.close()

    def keep(self, connection: socket.socket) -> None:
        """Keep one whose answer has come to its end. Those that waited too long go, and the oldest of too many."""
        now, gone = time.monotonic(), []
        with self._lock:
            self._kept.append((now, connection))
            while len(self._kept) > MAX_KEPT or now - self._kept[0][0] > MAX_IDLE_SECONDS:
                gone.append(self._kept.popleft()[1])
        for one in gone:
            one.close()

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            kept = list(self._kept)
            self._kept.clear()
        for _, connection in kept:
            connection.close()


def _has_news(connection: socket.socket) -> bool:
    """Tell whether anything came that nobody has asked for, be it the end."""
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0))
