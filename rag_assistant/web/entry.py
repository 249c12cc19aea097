"""WSGI middleware: base path, host case, trusted proxies' headers, and a request id."""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, Response, g, request
from werkzeug.middleware.proxy_fix import ProxyFix

from rag_assistant.accounts.addresses import is_within
from rag_assistant.runtime.telemetry.steps import begin_request, continue_trace
from rag_assistant.settings.schema import Settings


def init_app(app: Flask) -> None:
    """Install the middleware."""

    @app.before_request
    def begin() -> None:
        headers = request.headers
        g.request_id = begin_request(headers.get("X-Request-Id"))
        continue_trace(headers.get("traceparent"))

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
