"""The application is loaded while the server listens: until it is there, /healthz is answered, and all else waits."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, MutableMapping
from concurrent.futures import Future
from typing import Any

from gunicorn.arbiter import Arbiter

from rag_assistant import __version__
from rag_assistant.records.errors import AssistantError

log = logging.getLogger(__name__)

ALIVE = b'{"status":"ok"}\n'
ALIVE_HEADERS = [
    ("Content-Type", "application/json"),
    ("Content-Length", str(len(ALIVE))),
    ("X-Version", __version__),
]


class Loading:
    """Stands for the application (WSGI), and becomes it."""

    def __init__(self, base_path: str) -> None:
        self._alive_paths = ("/healthz", f"{base_path}/healthz")
        self._app: Future[Any] = Future()

    @property
    def app(self) -> Any:
        """The application; ``None`` until it is loaded."""
        return self._app.result() if self._app.done() else None

    def start(self, load: Callable[[], Any]) -> None:
        """Load the application in a thread. If that fails, end the process, as one that could not start."""
        threading.Thread(target=self._load, args=(load,), name="load", daemon=True).start()

    def _load(self, load: Callable[[], Any]) -> None:
        try:
            self._app.set_result(load())
        except AssistantError as error:
            log.error("Cannot start. %s", error)
        except BaseException:
            log.exception("Cannot start")
        if not self._app.done():
            logging.shutdown()
            os._exit(Arbiter.WORKER_BOOT_ERROR)

    def __call__(self, wsgi: MutableMapping[str, Any], start_response: Any) -> Iterable[bytes]:
        if not self._app.done() and wsgi["PATH_INFO"] in self._alive_paths:
            start_response("200 OK", ALIVE_HEADERS)
            return [ALIVE]
        app: Callable[..., Iterable[bytes]] = self._app.result()
        return app(wsgi, start_response)
