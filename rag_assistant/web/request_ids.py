"""Each request has an id, which its log lines and its response carry: the caller's ``X-Request-Id``, or a new one."""

from __future__ import annotations

from flask import Flask, Response, g, request

from rag_assistant.runtime.request_context import begin_request
from rag_assistant.runtime.telemetry.steps import continue_trace


def init_app(app: Flask) -> None:
    """Take note of each request before anything else is done for it."""

    @app.before_request
    def begin() -> None:
        headers = request.headers
        g.request_id = begin_request(headers.get("X-Request-Id"))
        continue_trace(headers.get("traceparent"))

    @app.after_request
    def add_id(response: Response) -> Response:
        response.headers["X-Request-Id"] = g.request_id
        return response
