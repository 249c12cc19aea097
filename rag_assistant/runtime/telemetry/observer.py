"""Measures the steps of answers: each goes into the figures, and into a trace if traces are switched on."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from rag_assistant.runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client import Histogram

    from rag_assistant.runtime.telemetry.steps import Step
    from rag_assistant.runtime.telemetry.tracing import Tracing

UNTRACED: AbstractContextManager[None] = nullcontext()


class Observer:
    """What one application measures with."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.metrics = Metrics()
        self._seconds = cache(self.metrics.steps.labels)
        self._tracing = tracing

    def watching(self, step: Step) -> AbstractContextManager[Step]:
        """Measure a step."""
        return _Measured(step, self._seconds(step.name), self._tracing.span(step) if self._tracing else UNTRACED)

    def close(self) -> None:
        """Send the traces that are not sent yet."""
        if self._tracing:
            self._tracing.close()


class _Measured:
    """A step whose time goes into the figures, and which goes into a trace as ``span``."""

    def __init__(self, step: Step, seconds: Histogram, span: AbstractContextManager[None]) -> None:
        self._step = step
        self._seconds = seconds
        self._span = span

    def __enter__(self) -> Step:
        self._began = time.perf_counter()
        self._span.__enter__()
        return self._step

    def __exit__(self, *error: Any) -> None:
        try:
            self._span.__exit__(*error)
        finally:
            self._seconds.observe(time.perf_counter() - self._began)


def open_observer(otlp_endpoint: str | None) -> Observer:
    """Return an observer that sends traces to an address, if one is set; OpenTelemetry is loaded only then.

    Raises ImportError where it is not installed.
    """
    if otlp_endpoint is None:
        return Observer()
    from rag_assistant.runtime.telemetry.tracing import Tracing, otlp_exporter

    return Observer(Tracing(otlp_exporter(otlp_endpoint)))
