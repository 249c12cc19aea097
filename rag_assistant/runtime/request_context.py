"""What belongs to the request or the answer at hand, for whoever logs on its behalf.

A thread that answers a turn inherits it from the request that asked, since it runs in a copy of that one's context.
"""

import re
from contextvars import ContextVar
from uuid import uuid4

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
turn_id: ContextVar[int | None] = ContextVar("turn_id", default=None)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@+/=-]{1,128}")


def begin_request(given_id: str | None) -> str:
    """Take note of a request and return its id: the given one if it is well-formed, else a new one."""
    new_id = given_id if given_id and _REQUEST_ID.fullmatch(given_id) else uuid4().hex
    request_id.set(new_id)
    turn_id.set(None)
    return new_id


def ids() -> dict[str, str | int]:
    """Return the ids of the request and the turn at hand, without those that there are not."""
    current = {"request_id": request_id.get(), "turn_id": turn_id.get()}
    return {name: value for name, value in current.items() if value is not None}
