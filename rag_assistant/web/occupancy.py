"""How long a request occupies one of its person's places: until its last byte is sent, or its reader has left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from flask import Flask, request

from rag_assistant.accounts.places import Kind
from rag_assistant.runtime.request_context import BEGUN
from rag_assistant.web.identity import identity
from rag_assistant.web.security import SAFE_METHODS
from rag_assistant.web.services import services

PLACE, WORK = "rag_assistant.place", "rag_assistant.work"


class Occupancy:
    """Gives every place back, however a response ends."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, wsgi: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        wsgi[PLACE] = held = ExitStack()
        try:
            response = self._app(wsgi, start_response)
        except BaseException:
            held.close()
            raise
        # Where nothing is held, the server may send a file by itself.
        return Held(response, held.close) if wsgi.get(WORK) is not None else response


class Held:
    """A response that gives its place back when its last byte is sent, or when it is closed before."""

    def __init__(self, response: Iterable[bytes], leave: Callable[[], None]) -> None:
        self._response = response
        self._pieces = iter(response)
        self._leave = leave

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self._leave()
            raise

    def close(self) -> None:
        """Close the response."""
        try:
            if hasattr(self._response, "close"):
                self._response.close()
        finally:
            self._leave()


def init_app(app: Flask) -> None:
    """Let nobody occupy more than one person's places, once it is known who asks."""
    app.wsgi_app = Occupancy(app.wsgi_app)  # type: ignore[method-assign, assignment]

    @app.before_request
    def take_place() -> None:
        limits = services().limits
        # Who is not signed in is no person: one of them would hold up everybody else who signs in.
        if limits is None or identity().person is None or request.endpoint in (None, "static", "versioned_static"):
            return
        kind = kind_of_request()
        held: ExitStack = request.environ[PLACE]
        request.environ[WORK] = work = ExitStack()
        held.callback(limits.places.take(kind))
        if kind == "reading":
            work.callback(limits.places.work())

    @app.teardown_request
    def end_work(_error: BaseException | None) -> None:
        work = request.environ.get(WORK)
        if work is not None:
            work.close()


def say_begun() -> None:
    """Let the next request of the same person begin: from here on this one only waits for an answer."""
    begun = request.environ.get(BEGUN)
    if begun is not None:
        begun()


def kind_of_request() -> Kind:
    """Return what a request occupies."""
    if request.mimetype == "multipart/form-data" or request.path.endswith("/import"):
        return "upload"
    return "reading" if request.method in SAFE_METHODS and not request.path.endswith("/stream") else "waiting"
