"""Every figure that /metrics shows, by name. The only place that names one; a test compares the dashboard with it.

The observer measures the steps of answers: each goes into the figures, and into a trace if traces are switched on.

Labels have few values, all of them words of ours: never a text, a name or an id of anyone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct, field
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

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


CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "rag_assistant_"
# From a search of a millisecond to a model that thinks for minutes.
STEP_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
FIRST_TEXT_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)


class Levels(Struct, frozen=True):
    """How things stand at this moment. ``parts`` are those of /readyz with their states."""

    running_answers: int = 0
    max_running_answers: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[str, int] = field(default_factory=dict)
    documents: Mapping[str, int] = field(default_factory=dict)
    indexed_chunks: int = 0


class Metrics:
    """The figures of one application, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=self._registry)

        def histogram(name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
            return Histogram(PREFIX + name, text, labels, registry=self._registry, buckets=tuple(buckets))

        self.turns = counter("turns", "Turns that ended, by how, and by the type of the error.", "ending", "error")
        self.trims = counter("trims", "Answers for which the history was trimmed, by reason.", "reason")
        self.tokens = counter("tokens", "Tokens as providers count them: in, cached (of those in) and out.", "kind")
        self.first_text = histogram(
            "first_text_seconds", "From the question to the first text of its answer.", FIRST_TEXT_BUCKETS
        )
        self.steps = histogram("step_seconds", "Time of the steps of an answer, by step.", STEP_BUCKETS, "step")
        self.refusals = counter("refusals", "Requests that were answered with an error, by its type.", "error")
        ProcessCollector(registry=self._registry)

    def exposition(self, levels: Levels) -> bytes:
        """Return all figures in Prometheus' format."""
        return generate_latest(_Together(self._registry, levels))


class _Together(Collector):
    """What was counted, and how things stand."""

    def __init__(self, counted: CollectorRegistry, levels: Levels) -> None:
        self._counted = counted
        self._levels = levels

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield from self._counted.collect()
        now = self._levels
        yield _gauge("running_answers", "Answers that are being written.", now.running_answers)
        yield _gauge("max_running_answers", "How many may be written at once.", now.max_running_answers)
        yield _gauge("indexed_chunks", "Chunks whose vectors are searched.", now.indexed_chunks)
        yield _by_label("jobs", "Work on documents that waits, by when it is due.", "due", now.jobs)
        yield _by_label("documents", "Documents, by their state.", "state", now.documents)
        parts = GaugeMetricFamily(
            f"{PREFIX}part", "The parts of /readyz: 1 for the state that each is in.", labels=["part", "state"]
        )
        for part, state in now.parts.items():
            parts.add_metric([part, state], 1)
        yield parts


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)


def _by_label(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
