"""Ids of the current request and answer, for logging.

A thread that answers a turn inherits them, since it runs in a copy of the request's context.
"""

import re
from contextvars import ContextVar
from uuid import uuid4

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
turn_id: ContextVar[int | None] = ContextVar("turn_id", default=None)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@+/=-]{1,128}")


def begin_request(given_id: str | None) -> str:
    """Begin a request and return its id: the given one if it is well-formed, otherwise a new one."""
    new_id = given_id if given_id and _REQUEST_ID.fullmatch(given_id) else uuid4().hex
    request_id.set(new_id)
    turn_id.set(None)
    return new_id


def ids() -> dict[str, str | int]:
    """Return the ids of the current request and turn, if any."""
    current = {"request_id": request_id.get(), "turn_id": turn_id.get()}
    return {name: value for name, value in current.items() if value is not None}
