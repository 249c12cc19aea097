"""The ids of the current request and answer, and the steps of the answer, measured where they happen:
``with step("model")``, or ``@step("keywords")``.

All are in the context of the request, of which the thread that answers has a copy.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal
from uuid import uuid4

# search: everything before the request is built; keywords, vectors and passages (reading them) are its parts.
StepName = Literal["turn", "search", "keywords", "vectors", "passages", "fit", "model", "tool"]

# What the seconds of a step are given to: ``Metrics.note_step``.
watching: ContextVar[Callable[[str, float], None] | None] = ContextVar("watching", default=None)
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
turn_id: ContextVar[int | None] = ContextVar("turn_id", default=None)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@+/=-]{1,128}")


@contextmanager
def step(name: StepName) -> Iterator[None]:
    """Measure what is done inside as a step, or each call of a function."""
    note, began = watching.get(), time.perf_counter()
    try:
        yield
    finally:
        if note is not None:
            note(name, time.perf_counter() - began)


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
