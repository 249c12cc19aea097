"""What belongs to the request or the answer at hand, for whoever logs or asks others on its behalf.

A thread that answers a turn inherits it from the request that asked, since it runs in a copy of that one's context.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from uuid import uuid4

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
turn_id: ContextVar[int | None] = ContextVar("turn_id", default=None)
traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@+/=-]{1,128}")
# W3C, Trace Context, section 3.2: a later version may have more behind the flags.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[ -~]{0,200})?"
)


def begin_request(given_id: str | None, given_traceparent: str | None) -> str:
    """Take note of a request and return its id: the given one if it is well-formed, else a new one.

    A ``traceparent`` that is not well-formed counts as none, as the standard says.
    """
    made = given_id if given_id and _REQUEST_ID.fullmatch(given_id) else uuid4().hex
    request_id.set(made)
    turn_id.set(None)
    traceparent.set(_well_formed(given_traceparent))
    return made


def ids() -> dict[str, str | int]:
    """Return the ids of the request and the turn at hand, without those that there are not."""
    known = {"request_id": request_id.get(), "turn_id": turn_id.get()}
    return {name: value for name, value in known.items() if value is not None}


def _well_formed(header: str | None) -> str | None:
    if not header or not _TRACEPARENT.fullmatch(header) or (header.startswith("00-") and len(header) != 55):
        return None
    return header
