"""WSGI middleware: what each request comes in by, and how long it counts among those of its person."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from flask import Flask, Response, g, request
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.wsgi import ClosingIterator

from rag_assistant.accounts.admission import is_within
from rag_assistant.accounts.limits import Kind
from rag_assistant.runtime.telemetry.steps import begin_request
from rag_assistant.settings.schema import Settings
from rag_assistant.web.identity import identity
from rag_assistant.web.routing import services
from rag_assistant.web.security import SAFE_METHODS


def init_app(app: Flask) -> None:
    """Give each request an id."""

    @app.before_request
    def begin() -> None:
        g.request_id = begin_request(request.headers.get("X-Request-Id"))

    @app.after_request
    def add_id(response: Response) -> Response:
        response.headers["X-Request-Id"] = g.request_id
        return response


class Entry:
    """The application below ``base_path``, whether the proxy in front strips it or not.

    No header decides that: it could come from outside. X-Forwarded-For and -Proto are trusted from ``trusted_proxies``
    only, and the sign-in headers from ``proxy_user_from``.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], settings: Settings) -> None:
        self._app = app
        self._behind_proxy = ProxyFix(app, x_for=1, x_proto=1)
        self._base_path = settings.base_path
        self._trusted_proxies = settings.trusted_proxies
        self._user_from = settings.proxy_user_from
        about_people = filter(None, (settings.proxy_user_header, settings.proxy_groups_header))
        # Their names in a request's environment (PEP 3333).
        self._about_people = [f"HTTP_{header.upper().replace('-', '_')}" for header in about_people]

    def __call__(self, wsgi: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path, base = wsgi.get("PATH_INFO", ""), self._base_path
        if base and (path == base or path.startswith(f"{base}/")):
            wsgi["PATH_INFO"] = path[len(base) :] or "/"
        wsgi["SCRIPT_NAME"] = base
        if "HTTP_HOST" in wsgi:
            wsgi["HTTP_HOST"] = wsgi["HTTP_HOST"].lower()
        # Checks the connected address, before a header replaces it.
        peer = wsgi.get("REMOTE_ADDR", "")
        if self._about_people and not is_within(peer, self._user_from):
            for name in self._about_people:
                wsgi.pop(name, None)
        app = self._behind_proxy if is_within(peer, self._trusted_proxies) else self._app
        return app(wsgi, start_response)


HELD, TAKEN = "rag_assistant.held", "rag_assistant.taken"


class Occupancy:
    """Releases the place of every request: when its last byte is sent, or its client has left."""

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


def limit_requests(app: Flask) -> None:
    """Limit the requests that each person has at once, after authentication."""

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
