"""Traces of answers, sent with OpenTelemetry. Loaded only if ``otlp_endpoint`` is set.

The names are those of its Semantic Conventions for Generative AI; they still change, so all of them are in names.json.
The provider is the application's own, independent of other uses of OpenTelemetry in the process.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pkgutil import get_data
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rag_assistant import __version__
from rag_assistant.runtime.telemetry.steps import Step, Value

AGENT = "rag-assistant"
# What speaks OpenAI's protocol counts as OpenAI; its address tells whose it is.
PROVIDER = "openai"
_NAMES: dict[str, dict[str, str]] = json.loads(get_data(__package__, "names.json") or b"")
OPERATIONS, NAMES = _NAMES["operations"], _NAMES["facts"]
# Not in the standard.
OWN_NAMES = {"turn_id", "ending", "turns_dropped"}


def span_name(step: Step) -> str:
    """Return the name of a step's span: the operation and its object."""
    operation = OPERATIONS.get(step.name)
    if operation is None:
        return step.name
    target = {"turn": AGENT, "model": step.facts.get("model"), "tool": step.facts.get("tool")}.get(step.name)
    return f"{operation} {target}" if target else operation


def attributes(step: Step) -> dict[str, str | int | float | bool | list[str]]:
    """Return a step's facts under the standard's names."""
    named: dict[str, str | int | float | bool | list[str]] = {}
    if operation := OPERATIONS.get(step.name):
        named["gen_ai.operation.name"] = operation
    if step.name == "turn":
        named["gen_ai.agent.name"] = AGENT
    if step.name == "model":
        named["gen_ai.provider.name"] = PROVIDER
        named |= _server(step.facts.get("base_url"))
    for fact, value in step.facts.items():
        name = NAMES.get(fact, f"rag_assistant.{fact}" if fact in OWN_NAMES else None)
        if name is not None and value is not None:
            as_text = str(value) if fact == "conversation_id" else value
            named[name] = [str(value)] if fact == "finish_reason" else as_text
    return named


def _server(base_url: Value) -> dict[str, str | int]:
    address = urlsplit(str(base_url or ""))
    if not address.hostname:
        return {}
    return {"server.address": address.hostname, "server.port": address.port or {"http": 80}.get(address.scheme, 443)}


HEADERS = TraceContextTextMapPropagator()
# How long the end of a process waits for the collector.
CLOSE_TIMEOUT_SECONDS = 2.0


class Tracing:
    """Makes a span of each step. A turn continues the trace of its caller."""

    def __init__(self, exporter: SpanExporter) -> None:
        resource = Resource.create({"service.name": AGENT, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("rag_assistant", __version__)

    @contextmanager
    def span(self, step: Step) -> Iterator[None]:
        """Trace a step, with its facts at the end; ``step.traceparent`` becomes that of its span."""
        below = trace.get_current_span().get_span_context().is_valid
        parent = None if below else HEADERS.extract({"traceparent": step.traceparent or ""})
        kind = trace.SpanKind.CLIENT if step.name == "model" else trace.SpanKind.INTERNAL
        span = self._tracer.start_span(span_name(step), context=parent, kind=kind)
        headers: dict[str, str] = {}
        HEADERS.inject(headers, trace.set_span_in_context(span))
        step.traceparent = headers.get("traceparent")
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except Exception as error:
            step.facts.setdefault("error", type(error).__name__)  # Its message may quote user text.
            raise
        finally:
            span.update_name(span_name(step))
            span.set_attributes(attributes(step))
            if step.facts.get("error"):
                span.set_status(trace.StatusCode.ERROR)
            span.end()

    def close(self) -> None:
        """Send what is left, if the collector accepts it soon."""
        # The provider itself would wait for half a minute.
        sending = threading.Thread(target=self._provider.shutdown, name="last traces", daemon=True)
        sending.start()
        sending.join(CLOSE_TIMEOUT_SECONDS)


def otlp_exporter(endpoint: str) -> SpanExporter:
    """Return the exporter for an OTLP address over HTTP."""
    return OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
