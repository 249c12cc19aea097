"""The steps of an answer, each measured where it is done: ``with step("model")``, or ``@measured("keywords")``.

Who measures is known by the context in which an answer runs. Where nobody does, a step costs next to nothing.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

from msgspec import Struct, field

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

# search: everything before the request is built; keywords, vectors and passages (reading them) are its parts.
StepName = Literal["turn", "search", "keywords", "vectors", "passages", "fit", "model", "tool"]
Value = str | int | float | bool | None


class Step(Struct):
    """One step. ``facts`` go into a trace: no texts of anyone, and in words of ours (gen_ai.py has the standard's).

    ``traceparent`` is what others are told who work for this step. The trace of what follows goes on below the step.
    """

    name: StepName
    facts: dict[str, Value] = field(default_factory=dict)
    traceparent: str | None = None


# What measures a step while it is done: ``Observer.watching``.
watching: ContextVar[Callable[[Step], AbstractContextManager[Step]] | None] = ContextVar("watching", default=None)
_traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)

# W3C, Trace Context, section 3.2: a version after the first may have more behind the flags.
_TRACEPARENT = re.compile(
    r"(?!ff|00-.{53})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[ -~]{0,200})?"
)


def continue_trace(traceparent: str | None) -> None:
    """Let the steps of the request at hand belong to the trace of its caller.

    A ``traceparent`` that is not well-formed counts as none, as the standard says.
    """
    _traceparent.set(traceparent if traceparent and _TRACEPARENT.fullmatch(traceparent) else None)


def step(name: StepName, **facts: Value) -> AbstractContextManager[Step]:
    """Measure what is done inside as a step; more facts can be added to it until its end."""
    begun = Step(name, facts, _traceparent.get())
    watch = watching.get()
    return nullcontext(begun) if watch is None else watch(begun)


def measured(name: StepName) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Make each call of a function a step."""

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        @wraps(function)
        def run(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            with step(name):
                return function(*args, **kwargs)

        return run

    return decorate
