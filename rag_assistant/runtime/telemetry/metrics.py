"""All metrics of /metrics, by name.

The only place that names one; a test compares the dashboard with it. Labels have few values, of which only models'
names aren't fixed: never anybody's text, name or id.
"""

import json
from collections.abc import Iterable, Mapping
from pkgutil import get_data

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "rag_assistant_"
MAX_MODELS = 20
# From a search of a millisecond to a model that reasons for minutes.
STEP_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
FIRST_TEXT_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)


# Each gauge with what it measures, and its labels.
GAUGES: dict[str, list[str]] = json.loads(get_data(__package__, "gauges.json") or b"")
# The value of each gauge, or of each of its labels.
Levels = Mapping[str, float | Mapping[str, float] | Mapping[tuple[str, str], float]]


class Metrics:
    """The metrics of one application, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=self._registry)

        def histogram(name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
            return Histogram(PREFIX + name, text, labels, registry=self._registry, buckets=tuple(buckets))

        self.turns = counter("turns", "Turns that ended, by how, and by the type of the error.", "ending", "error")
        self.trims = counter("trims", "Answers for which the history was trimmed, by reason.", "reason")
        self._requests = counter("model_requests", "Requests that a model answered, by model.", "model")
        self._tokens = counter("tokens", "Tokens by model and kind: in, cached (of those in) and out.", "model", "kind")
        self._cost = counter("model_cost", "What they cost by model_prices.", "model")
        self._models: set[str] = set()
        self.first_text = histogram(
            "first_text_seconds", "From the question to the first text of its answer.", FIRST_TEXT_BUCKETS
        )
        self.steps = histogram("step_seconds", "Time of the steps of an answer, by step.", STEP_BUCKETS, "step")
        self.refusals = counter("refusals", "Requests that were answered with an error, by its type.", "error")
        ProcessCollector(registry=self._registry)

    def note_step(self, name: str, seconds: float) -> None:
        """Record how long a step of an answer took."""
        self.steps.labels(name).observe(seconds)

    def count_request(self, model: str, tokens: Mapping[str, int], cost: float) -> None:
        """Count a request to a model and its tokens by kind; after ``MAX_MODELS`` of them the others are "other"."""
        if len(self._models) < MAX_MODELS:
            self._models.add(model)
        label = model if model in self._models else "other"
        self._requests.labels(label).inc()
        self._cost.labels(label).inc(cost)
        for kind, count in tokens.items():
            self._tokens.labels(label, kind).inc(count)

    def exposition(self, levels: Levels) -> bytes:
        """Return all metrics in Prometheus' format, with the gauges whose ``levels`` are known."""
        registry = CollectorRegistry()
        for name, level in levels.items():
            text, *labels = GAUGES[name]
            gauge = Gauge(PREFIX + name, text, labels, registry=registry)
            if not isinstance(level, Mapping):
                gauge.set(level)
                continue
            for values, number in level.items():
                gauge.labels(*([values] if isinstance(values, str) else values)).set(number)
        return generate_latest(self._registry) + generate_latest(registry)
