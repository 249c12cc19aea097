"""The ids of the current request and answer, and the steps of the answer, measured where they happen:
``with step("model")``, or ``@step("keywords")``.

All are in the context of the request, of which the thread that answers has a copy. Without an observer, a step costs
next to nothing.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal
from uuid import uuid4

from msgspec import Struct, field

# search: everything before the request is built; keywords, vectors and passages (reading them) are its parts.
StepName = Literal["turn", "search", "keywords", "vectors", "passages", "fit", "model", "tool"]
Value = str | int | float | bool | None


class Step(Struct):
    """One step. ``facts`` go into a trace: no user text, and under our names (tracing.py has the standard's).

    ``traceparent`` is passed to services that work for this step, whose traces then belong to it.
    """

    name: StepName
    facts: dict[str, Value] = field(default_factory=dict)
    traceparent: str | None = None


# What measures a step: ``Observer.watching``.
watching: ContextVar[Callable[[Step], AbstractContextManager[Step]] | None] = ContextVar("watching", default=None)
_traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
turn_id: ContextVar[int | None] = ContextVar("turn_id", default=None)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@+/=-]{1,128}")
# W3C, Trace Context, section 3.2: versions after the first may have more after the flags.
_TRACEPARENT = re.compile(
    r"(?!ff|00-.{53})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[ -~]{0,200})?"
)


def continue_trace(traceparent: str | None) -> None:
    """Continue the trace of the request's caller. A malformed ``traceparent`` counts as none (the standard)."""
    _traceparent.set(traceparent if traceparent and _TRACEPARENT.fullmatch(traceparent) else None)


@contextmanager
def step(name: StepName, **facts: Value) -> Iterator[Step]:
    """Measure what is done inside as a step, or each call of a function; facts can be added until its end."""
    begun = Step(name, facts, _traceparent.get())
    watch = watching.get()
    with nullcontext(begun) if watch is None else watch(begun):
        yield begun


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
