"""Maps every error to HTTP: one status for each class, one shape for all, and those of OpenAI and Anthropic."""

import errno
import json
import logging
import re
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any

from flask import Flask, Response, jsonify, make_response, render_template, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge, SecurityError

from rag_assistant.conversations.pictures import MAX_PICTURES, MAX_PICTURES_CHARS
from rag_assistant.records import errors
from rag_assistant.records.errors import AssistantError
from rag_assistant.web.routing import ANTHROPIC, FOR_PROGRAMS, whole_services
from rag_assistant.web.security import MAX_BODY_BYTES

log = logging.getLogger(__name__)

# The classes of errors by status. One that isn't listed takes the status of its nearest parent.
NAMES: dict[str, list[str]] = json.loads(get_data(__package__, "statuses.json") or b"")
STATUS = {getattr(errors, name): int(status) for status, names in NAMES.items() for name in names}
# If no duration is known.
RETRY_AFTER_SECONDS = 5
# Besides every 503: errors that may go away by themselves.
MAY_PASS = (errors.ModelUnreachable, errors.AnswerInterrupted, errors.StorageFailed)
OPENAI = "/v1/"
# There, an invalid value and a needed decision are both a bad request.
OPENAI_STATUS = {409: 400, 422: 400}
# These have their own status: clients retry a 409, and what is busy may be free a moment later.
OPENAI_OWN_STATUS = {"ConversationBusy": 409, "ContextTooLong": 400}
OPENAI_KINDS = {403: "permission_error", 429: "rate_limit_error"}
OPENAI_CODES = {"QuestionDoesNotFit": "context_length_exceeded", "ContextTooLong": "context_length_exceeded"}
ANTHROPIC_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    503: "overloaded_error",
}
PROBLEM = "application/problem+json"
DISK_FULL = "The disk is full, so nothing could be stored. Nothing that was stored is lost."
DISK_FAILED = "This could not be written to disk; see the server log. Nothing that was stored is lost."
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def init_app(app: Flask) -> None:
    """Return every error in our shape: as JSON to programs, as a page elsewhere."""
    app.register_error_handler(AssistantError, answer_assistant_error)
    app.register_error_handler(HTTPException, answer_http_error)
    app.register_error_handler(Exception, answer_unexpected)


@cache
def error_kinds() -> tuple[tuple[int, str, str], ...]:
    """Return every error the API can return: its status, its name, and the first clause of what it says."""
    groups = (errors.NotFound, errors.Conflict, errors.Busy)
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AssistantError)]
    clauses = {
        kind: re.split(r";|\.\s", f"{kind.__doc__ or kind.sentence}\n")[0].strip().rstrip(".").replace("``", "`")
        for kind in kinds
        if kind not in groups
    }
    return tuple(sorted((status_of(kind), kind.__name__, f"{clause}.") for kind, clause in clauses.items()))


def status_of(kind: type[Exception]) -> int:
    """Return the HTTP status of an error class."""
    return next(STATUS[parent] for parent in kind.__mro__ if parent in STATUS)


def answer_assistant_error(error: AssistantError) -> Response:
    """Return the response to an error raised on purpose."""
    kind = type(error)
    response = _answer(status_of(kind), error.as_dict(), error.param)
    if isinstance(error, errors.NotSignedIn):
        response.headers["WWW-Authenticate"] = "Bearer"
    return _with_retry_after(response, kind, error.retry_after_seconds)


def answer_with_error(data: dict[str, Any]) -> Response:
    """Return a turn's data as the response, with the status of its stored error."""
    error = data["error"]
    kind: type[Exception] = getattr(errors, error["type"], AssistantError)
    if request.path.startswith(OPENAI) or _wants_problem():
        response = _answer(status_of(kind), error)
    else:
        response = make_response(jsonify(data), status_of(kind))
    return _with_retry_after(response, kind, error.get("retry_after_seconds"))


def _with_retry_after(response: Response, kind: type[Exception], seconds: float | None) -> Response:
    """Return a response with Retry-After, if the same request may succeed later."""
    if seconds is not None or response.status_code == 503 or issubclass(kind, MAY_PASS):
        response.headers["Retry-After"] = str(max(1, round(seconds or RETRY_AFTER_SECONDS)))
    return response


def page_with_error(error: AssistantError, page: str) -> Response:
    """Return a page that shows the error itself, such as a form to correct."""
    return _with_retry_after(make_response(page, status_of(type(error))), type(error), error.retry_after_seconds)


def answer_http_error(error: HTTPException) -> Response:
    """Return the response to Flask's own errors: unknown addresses, wrong methods, foreign hosts, large bodies."""
    response = _answer(error.code or 500, {"type": type(error).__name__, "message": _sentence(error)})
    if error.code == 405 and (allowed := error.get_response().headers.get("Allow")):
        response.headers["Allow"] = allowed
    return response


def answer_unexpected(error: Exception) -> Response:
    """Return the response to an unexpected error, without internals; a disk may be full or fail anywhere."""
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        log.error("Writing to disk failed (%s): %s %s", error.strerror, request.method, request.path)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return answer_assistant_error(errors.StorageFailed(DISK_FULL if full else DISK_FAILED))
    log.exception("Unexpected: %s %s", request.method, request.path, exc_info=error)
    return _answer(500, {"type": "InternalError", "message": "The server had an error; see the server log."})


def _sentence(error: HTTPException) -> str:
    if isinstance(error, RequestEntityTooLarge):
        if request.max_content_length == MAX_BODY_BYTES:
            return f"The body is too large; the limit is {MAX_BODY_BYTES // 1_000_000} MB."
        if request.max_content_length == MAX_BODY_BYTES + MAX_PICTURES_CHARS:
            return f"The body is too large; a question may have up to {MAX_PICTURES} pictures of 5 MB each."
        max_mb = whole_services().settings.current.max_upload_mb
        return f"The upload is too large: each file may have up to {max_mb} MB (max_upload_mb)."
    if isinstance(error, SecurityError):
        host = request.headers.get("Host", "")
        return f'The host "{host}" is not allowed. Add it to allowed_hosts.'
    if error.code == 404:
        return f"There is nothing at {request.path}."
    if isinstance(error, MethodNotAllowed):
        allowed = ", ".join(sorted(set(error.valid_methods or ()) - {"HEAD", "OPTIONS"}))
        return f"{request.method} is not allowed for {request.path}; use {allowed}."
    text = str(error.description or error.name)
    return text if text.endswith(".") else f"{text}."


def _answer(status: int, data: dict[str, Any], param: str | None = None) -> Response:
    whole_services().metrics.refusals.labels(data["type"]).inc()
    if request.path.startswith(OPENAI):
        status = OPENAI_OWN_STATUS.get(data["type"]) or OPENAI_STATUS.get(status, status)
    if _wants_problem():
        return _problem(status, data)
    if request.path.startswith(OPENAI):
        shown = anthropic_error(status, data, param) if request.path.startswith(ANTHROPIC) else None
        return make_response(jsonify(shown or {"error": openai_error(status, data, param)}), status)
    wants_page = not request.path.startswith(FOR_PROGRAMS) and request.accept_mimetypes.accept_html
    if wants_page and status != 400:
        return make_response(render_template("error.html", status=status, error=data), status)
    return make_response(jsonify(error=data), status)


def _wants_problem() -> bool:
    """Return whether a client asks for problem details; ``*/*`` doesn't count."""
    return any(kind == PROBLEM for kind, _ in request.accept_mimetypes)


def _problem(status: int, data: dict[str, Any]) -> Response:
    """Return an error as problem details (RFC 9457)."""
    name = data["type"]
    problem = {
        "type": f"{request.script_root}/docs#{name}",
        "title": re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize(),
        "status": status,
        "detail": data["message"],
        "instance": request.path,
        "code": name,
    }
    response = make_response(jsonify(problem | ({"details": data["details"]} if "details" in data else {})), status)
    response.mimetype = PROBLEM
    return response


def openai_error(status: int, error: Mapping[str, Any], param: str | None = None) -> dict[str, Any]:
    """Return an error in OpenAI's shape, for OpenAI's status; ``param`` is the invalid field."""
    kind = "server_error" if status >= 500 else OPENAI_KINDS.get(status, "invalid_request_error")
    shown = {"message": error["message"], "type": kind, "param": param, "code": code_of(error["type"])}
    return shown | ({"details": error["details"]} if "details" in error else {})


def anthropic_error(status: int, error: Mapping[str, Any], param: str | None = None) -> dict[str, Any]:
    """Return an error in Anthropic's shape, for OpenAI's status; ``param`` is the invalid field."""
    shown = openai_error(status, error, param)
    kind = ANTHROPIC_KINDS.get(status) or shown["type"].replace("server_error", "api_error")
    return {"type": "error", "error": shown | {"type": kind}}


def code_of(name: str) -> str:
    """Return the code of an error's name, such as conversation_not_found."""
    return OPENAI_CODES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
