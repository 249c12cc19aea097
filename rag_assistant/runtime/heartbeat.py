"""A thread that does the same small thing again and again until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

STOP_TIMEOUT_SECONDS = 5.0


class Heartbeat:
    """Calls ``beat``, which may not raise, every so many seconds."""

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the beat at hand; one that hangs is not waited for."""
        self._stopping.set()
        self._thread.join(STOP_TIMEOUT_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            self._beat()
