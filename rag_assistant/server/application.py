"""What the process that serves loads, and the one that watches over it does not: the application."""

from __future__ import annotations

import gc
from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.util import import_app
from werkzeug.exceptions import RequestTimeout

from rag_assistant.records.errors import MalformedBody
from rag_assistant.web.errors import answer_assistant_error


class BodyTooSlow(RequestTimeout, TimeoutError):
    """The body of a request comes too slowly, or not at all any more."""

    description = "The body of the request did not arrive in time."


def load_application(app_uri: str) -> Any:
    """Return the application with its services started. Raises AssistantError.

    ``app_uri`` names it as gunicorn does, ``module:callable()``. A body in parts of impossible sizes is found by
    gunicorn while the application reads it.
    """
    app: Any = import_app(app_uri)
    app.extensions["assistant"].start()
    app.register_error_handler(ParseException, answer_malformed_body)
    gc.freeze()  # What is there stays; to look through it would keep every thread waiting for some 100 ms.
    gc.enable()
    return app


def answer_malformed_body(error: ParseException) -> Any:
    """Answer a request whose body could not be taken apart."""
    return answer_assistant_error(MalformedBody(f"The body of the request could not be read: {error}."))
