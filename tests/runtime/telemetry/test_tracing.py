"""Traces on their way out."""

import threading
from typing import TYPE_CHECKING

import pytest

from rag_assistant.runtime.telemetry.steps import Step

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install -e '.[otel]'")

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter


def hanging_exporter(asked: threading.Event, released: threading.Event) -> "SpanExporter":
    """Return an exporter whose collector takes a request and never answers it, not even at the end."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Hanging(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            asked.set()
            released.wait()
            return SpanExportResult.FAILURE

        def shutdown(self) -> None:
            released.wait()

    return Hanging()


def test_a_collector_that_hangs_does_not_hold_up_the_end() -> None:
    from rag_assistant.runtime.telemetry.tracing import Tracing

    asked, released = threading.Event(), threading.Event()
    tracing = Tracing(hanging_exporter(asked, released))
    with tracing.span(Step("fit")):
        pass
    ending = threading.Thread(target=tracing.close)
    ending.start()
    try:
        ending.join(20)
        assert (asked.is_set(), ending.is_alive()) == (True, False)
    finally:
        released.set()
        ending.join()
