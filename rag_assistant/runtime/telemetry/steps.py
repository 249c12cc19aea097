"""The steps of an answer, each measured where it is done: ``with step("model")``, or ``@measured("keywords")``.

Who measures is known by the context in which an answer runs. Where nobody does, a step costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Literal, ParamSpec, Protocol, TypeVar

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


class Watcher(Protocol):
    """Measures steps."""

    def watching(self, step: Step) -> AbstractContextManager[Step]:
        """Measure what is done inside, and give the step."""


watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)

# W3C, Trace Context, section 3.2: a later version may have more behind the flags.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[ -~]{0,200})?"
)


def continue_trace(traceparent: str | None) -> None:
    """Let the steps of the request at hand belong to the trace of its caller.

    A ``traceparent`` that is not well-formed counts as none, as the standard says.
    """
    _traceparent.set(_well_formed(traceparent))


def step(name: StepName, **facts: Value) -> AbstractContextManager[Step]:
    """Measure what is done inside as a step; more facts can be added to it until its end."""
    begun = Step(name, facts, _traceparent.get())
    watching = watcher.get()
    return nullcontext(begun) if watching is None else watching.watching(begun)


def measured(name: StepName) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Make each call of a function a step."""

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        @wraps(function)
        def run(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            with step(name):
                return function(*args, **kwargs)

        return run

    return decorate


def _well_formed(header: str | None) -> str | None:
    if not header or not _TRACEPARENT.fullmatch(header) or (header.startswith("00-") and len(header) != 55):
        return None
    return header
