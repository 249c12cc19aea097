"""What a request passes before Flask: the path of a proxy is taken away, and a host is the same in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Entry:
    """The application below ``base_path``, whether the proxy in front takes that away or not.

    No header says so: one could come from outside.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], base_path: str) -> None:
        self._app = app
        self._base_path = base_path

    def __call__(self, wsgi: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path, base = wsgi.get("PATH_INFO", ""), self._base_path
        if base and (path == base or path.startswith(f"{base}/")):
            wsgi["PATH_INFO"] = path[len(base) :] or "/"
        wsgi["SCRIPT_NAME"] = base
        if "HTTP_HOST" in wsgi:
            wsgi["HTTP_HOST"] = wsgi["HTTP_HOST"].lower()
        return self._app(wsgi, start_response)
