"""What a request passes before Flask: the path of a proxy is taken away, a host is the same in any case, and a proxy
that is named says from where a request came, and by which scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from werkzeug.middleware.proxy_fix import ProxyFix


class Entry:
    """The application below ``base_path``, whether the proxy in front takes that away or not.

    No header says so: one could come from outside. X-Forwarded-For and -Proto count from ``trusted_proxies`` alone.
    """

    def __init__(
        self, app: Callable[..., Iterable[bytes]], base_path: str, trusted_proxies: Collection[str] = ()
    ) -> None:
        self._app = app
        self._behind_proxy = ProxyFix(app, x_for=1, x_proto=1)
        self._base_path = base_path
        self._trusted_proxies = frozenset(trusted_proxies)

    def __call__(self, wsgi: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path, base = wsgi.get("PATH_INFO", ""), self._base_path
        if base and (path == base or path.startswith(f"{base}/")):
            wsgi["PATH_INFO"] = path[len(base) :] or "/"
        wsgi["SCRIPT_NAME"] = base
        if "HTTP_HOST" in wsgi:
            wsgi["HTTP_HOST"] = wsgi["HTTP_HOST"].lower()
        app = self._behind_proxy if wsgi.get("REMOTE_ADDR") in self._trusted_proxies else self._app
        return app(wsgi, start_response)
