"""Health checks in their own thread, so that one that hangs delays nobody."""

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

MAX_SECONDS = 1.0


class Probe:
    """Checks a part's state, ``silent`` after a second or an error, and caches it for ``max_age_seconds``."""

    def __init__(self, name: str, ask: Callable[[], str], silent: str, max_age_seconds: float = 0.0) -> None:
        self._name = name
        self._ask = ask
        self._silent = silent
        self._max_age = max_age_seconds
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._said = silent
        self._asked_at = 0.0

    def state(self) -> str:
        with self._lock:
            if self._asking is not None and not self._asking.is_alive():
                fresh = time.monotonic() - self._asked_at < self._max_age
                self._asking = self._asking if fresh else None
            if self._asking is None:
                self._said, self._asked_at = self._silent, time.monotonic()
                self._asking = threading.Thread(target=self._run, name=f"{self._name}-probe", daemon=True)
                self._asking.start()
            self._asking.join(MAX_SECONDS)
            return self._silent if self._asking.is_alive() else self._said

    def _run(self) -> None:
        try:
            self._said = self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, it does not answer
            log.error("%s does not answer: %s", self._name, error)
