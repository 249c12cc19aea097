"""The steps of an answer, each measured where it is done: ``with step("model")``, or ``@step("keywords")``.

Who measures is known by the context in which an answer runs. Where nobody does, a step costs next to nothing.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal

from msgspec import Struct, field

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


@contextmanager
def step(name: StepName, **facts: Value) -> Iterator[Step]:
    """Measure what is done inside as a step, or each call of a function; more facts can be added until its end."""
    begun = Step(name, facts, _traceparent.get())
    watch = watching.get()
    with nullcontext(begun) if watch is None else watch(begun):
        yield begun
