"""Errors as OpenAI's clients expect them: shape, status, and a code for programs. Pure."""

import re
from collections.abc import Mapping
from typing import Any

# There, an invalid value and a needed decision are both a bad request.
STATUS = {409: 400, 422: 400}
# These have their own status: clients retry a 409, and what is busy may be free a moment later.
OWN_STATUS = {"ConversationBusy": 409, "ContextTooLong": 400}
KINDS = {403: "permission_error", 429: "rate_limit_error"}
CODES = {
    "QuestionDoesNotFit": "context_length_exceeded",
    "ContextTooLong": "context_length_exceeded",
    "ModelNotFound": "model_not_found",
}


def openai_status(status: int, name: str) -> int:
    """Return the status that OpenAI would use for an error of ours."""
    return OWN_STATUS.get(name) or STATUS.get(status, status)


def openai_error(status: int, error: Mapping[str, Any], param: str | None = None) -> dict[str, Any]:
    """Return an error in OpenAI's shape, for OpenAI's status; ``param`` is the invalid field."""
    kind = "server_error" if status >= 500 else KINDS.get(status, "invalid_request_error")
    shown = {"message": error["message"], "type": kind, "param": param, "code": code_of(error["type"])}
    return shown | ({"details": error["details"]} if "details" in error else {})


# Anthropic's kinds by status.
ANTHROPIC = {401: "authentication_error", 404: "not_found_error", 413: "request_too_large", 503: "overloaded_error"}


def anthropic_error(status: int, error: Mapping[str, Any], param: str | None = None) -> dict[str, Any]:
    """Return an error in Anthropic's shape, for OpenAI's status; ``param`` is the invalid field."""
    shown = openai_error(status, error, param)
    kind = ANTHROPIC.get(status) or shown["type"].replace("server_error", "api_error")
    return {"type": "error", "error": shown | {"type": kind}}


def code_of(name: str) -> str:
    """Return the code of an error's name, such as conversation_not_found."""
    return CODES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
