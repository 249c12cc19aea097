"""A line in the log for each request, once it is answered to its end, if ``access_log`` is set."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from werkzeug.wsgi import ClosingIterator

access_log = logging.getLogger("rag_assistant.access")


def logged(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return an application that logs its requests. What was searched for stands behind the ? and is left out."""
    access_log.setLevel(logging.INFO)  # Who asks for it wants it at every log_level.

    def call(wsgi: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        began = time.monotonic()
        fields = {"method": wsgi["REQUEST_METHOD"], "path": wsgi["REQUEST_URI"].partition("?")[0]}
        sent = 0

        def start(status: str, *more: Any) -> Any:
            fields["status"] = int(status.partition(" ")[0])
            return start_response(status, *more)

        def count(pieces: Iterable[bytes]) -> Iterator[bytes]:
            nonlocal sent
            for piece in pieces:
                sent += len(piece)
                yield piece

        def write() -> None:
            fields.update(bytes=sent, milliseconds=int((time.monotonic() - began) * 1000))
            sentence = "%(method)s %(path)s %(status)d, %(bytes)d bytes, %(milliseconds)d ms"
            access_log.info(sentence, fields, extra={"fields": fields})

        response = app(wsgi, start)
        close = getattr(response, "close", None)
        return ClosingIterator(count(response), [close, write] if close else [write])

    return call
