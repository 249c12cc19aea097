"""The names of the standard are those of its own package."""

import pytest

from rag_assistant.runtime.telemetry import tracing as gen_ai
from rag_assistant.runtime.telemetry.steps import Step

pytest.importorskip("opentelemetry.semconv", reason="pip install -e '.[otel]'")


def test_the_names_are_those_of_the_standard() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, server_attributes
    from opentelemetry.semconv.attributes import error_attributes

    known = {
        value
        for module in (gen_ai_attributes, server_attributes, error_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    facts = dict.fromkeys(gen_ai.NAMES, "1") | {"base_url": "http://model:1234/v1"}
    for name in ("turn", "search", "model", "tool", "fit"):
        assert set(gen_ai.attributes(Step(name, dict(facts)))) <= known, name
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert set(gen_ai.OPERATIONS.values()) <= operations
    assert gen_ai.PROVIDER in {one.value for one in gen_ai_attributes.GenAiProviderNameValues}


def test_an_endpoint_is_named_by_host_and_port() -> None:
    found = gen_ai.attributes(Step("model", {"base_url": "https://models.example/v1", "model": "m"}))
    assert (found["server.address"], found["server.port"]) == ("models.example", 443)
    assert gen_ai.span_name(Step("model", {"model": "m"})) == "chat m"
    assert gen_ai.span_name(Step("fit")) == "fit"
