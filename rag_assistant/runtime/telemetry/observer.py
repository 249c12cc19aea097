"""Measures the steps of answers: each goes into the figures, and into a trace if traces are switched on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rag_assistant.runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from rag_assistant.runtime.telemetry.steps import Step
    from rag_assistant.runtime.telemetry.tracing import Tracing


class Observer:
    """What one application measures with."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.metrics = Metrics()
        self._tracing = tracing

    @contextmanager
    def watching(self, step: Step) -> Iterator[Step]:
        """Measure a step."""
        began = time.perf_counter()
        try:
            with self._tracing.span(step) if self._tracing else nullcontext():
                yield step
        finally:
            self.metrics.steps.labels(step.name).observe(time.perf_counter() - began)

    def close(self) -> None:
        """Send the traces that are not sent yet."""
        if self._tracing:
            self._tracing.close()


def open_observer(otlp_endpoint: str | None) -> Observer:
    """Return an observer that sends traces to an address, if one is set; OpenTelemetry is loaded only then.

    Raises ImportError where it is not installed.
    """
    if otlp_endpoint is None:
        return Observer()
    from rag_assistant.runtime.telemetry.tracing import Tracing, otlp_exporter

    return Observer(Tracing(otlp_exporter(otlp_endpoint)))
