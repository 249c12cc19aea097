"""Limits concurrent requests per person: each counts until its last byte is sent, or its client has left."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from flask import Flask, g, request
from werkzeug.wsgi import ClosingIterator

from rag_assistant.accounts.limits import Kind
from rag_assistant.web.identity import identity
from rag_assistant.web.routing import services
from rag_assistant.web.security import SAFE_METHODS

HELD, TAKEN = "rag_assistant.held", "rag_assistant.taken"


class Occupancy:
    """Releases the place of every request, however its response ends."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, wsgi: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        wsgi[HELD] = held = ExitStack()
        try:
            response = self._app(wsgi, start_response)
        except BaseException:
            held.close()
            raise
        if TAKEN not in wsgi:  # Then the server may send a file by itself.
            return response
        held.callback(getattr(response, "close", lambda: None))
        return ClosingIterator(_until_sent(response, held.close), held.close)


def _until_sent(pieces: Iterable[bytes], release: Callable[[], None]) -> Iterator[bytes]:
    yield from pieces
    release()


def init_app(app: Flask) -> None:
    """Enforce the limit on every request, after authentication."""
    app.wsgi_app = Occupancy(app.wsgi_app)  # type: ignore[method-assign, assignment]

    @app.before_request
    def take_place() -> None:
        limits = services().limits
        # Anonymous requests aren't limited: one client could block everybody else's sign-in.
        if limits is None or identity().person is None or request.endpoint in (None, "static", "versioned_static"):
            return
        kind = kind_of_request()
        request.environ[HELD].callback(limits.places.take(kind))
        request.environ[TAKEN] = True
        if kind == "reading":
            g.work_done = limits.places.work()

    @app.teardown_request
    def end_work(_error: BaseException | None) -> None:
        g.pop("work_done", lambda: None)()


def kind_of_request() -> Kind:
    if request.mimetype == "multipart/form-data" or request.path.endswith("/import"):
        return "upload"
    return "reading" if request.method in SAFE_METHODS and not request.path.endswith("/stream") else "waiting"
