"""Measures the steps of answers: each goes into the figures, and into a trace if traces are switched on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from rag_assistant.errors import SettingsError
from rag_assistant.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from rag_assistant.telemetry.steps import Step
    from rag_assistant.telemetry.tracing import Tracing


class Observer:
    """What one application measures with."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.metrics = Metrics()
        self._tracing = tracing

    @contextmanager
    def watching(self, step: Step) -> Iterator[None]:
        """Measure a step."""
        span: AbstractContextManager[None] = self._tracing.span(step) if self._tracing else nullcontext()
        began = time.perf_counter()
        try:
            with span:
                yield
        finally:
            self.metrics.steps.labels(step.name).observe(time.perf_counter() - began)

    def close(self) -> None:
        """Send the traces that are not sent yet."""
        if self._tracing:
            self._tracing.close()


def open_observer(otlp_endpoint: str | None) -> Observer:
    """Return an observer that sends traces to an address, if one is set. Raises SettingsError.

    OpenTelemetry is loaded only then.
    """
    if otlp_endpoint is None:
        return Observer()
    try:
        from rag_assistant.telemetry.tracing import Tracing, otlp_exporter
    except ImportError as error:
        raise SettingsError(
            f"otlp_endpoint is {otlp_endpoint}, but what sends traces is not installed: {error.name} is missing. "
            "Install it with pip install -r requirements-otel.txt, or, of a wheel, the extra otel."
        ) from error
    return Observer(Tracing(otlp_exporter(otlp_endpoint)))
