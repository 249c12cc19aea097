"""The trace of an answer: its steps below one another, named as the standard has it, without a word of anyone."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.records.errors import SettingsError
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.otlp_collector import Collector
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until, upload

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install -e '.[otel]'")

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture
def environment(environment: dict[str, str], collector: Collector) -> dict[str, str]:
    return environment | {"OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}


def test_the_steps_of_an_answer_are_one_trace_that_the_endpoint_continues(
    client: FlaskClient, stub: StubModel, collector: Collector
) -> None:
    upload(client, "The canary sings at nineteen o'clock.", name="canary.txt")
    stub.replies.append(Reply("Canary [1].", usage={"prompt_tokens": 40, "completion_tokens": 4}))
    body = {"question": "When does the canary sing?"}
    answer = client.post("/api/query", json=body, headers={"traceparent": PARENT}).json
    client.application.extensions["assistant"].observer.close()
    assert collector.paths == {"/v1/traces"}
    spans = {span.name: span for span in collector.spans()}
    turn, model = spans["invoke_agent rag-assistant"], spans["chat stub-model"]
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    assert turn.parent_span_id.hex() == PARENT.split("-")[2]
    assert {spans[name].parent_span_id for name in ("retrieval", "fit", "chat stub-model")} == {turn.span_id}
    assert {spans[name].parent_span_id for name in ("keywords", "vectors")} == {spans["retrieval"].span_id}
    sent = {name.lower(): value for name, value in stub.requests[-1].headers.items()}
    assert sent["traceparent"] == f"00-{TRACE}-{model.span_id.hex()}-01"
    told = {one.key: one.value for one in model.attributes}
    assert told["gen_ai.operation.name"].string_value == "chat"
    assert told["gen_ai.usage.input_tokens"].int_value == 40
    assert told["server.port"].int_value == stub.port
    of_turn = {one.key: one.value.string_value for one in turn.attributes}
    assert of_turn["gen_ai.conversation.id"] == str(answer["conversation_id"])
    assert b"anary" not in b"".join(collector.bodies)


def test_a_failure_is_in_the_trace_by_its_type(client: FlaskClient, stub: StubModel, collector: Collector) -> None:
    stub.default = Reply(status=400, body=b'{"error": {"message": "canary"}}')
    client.post("/api/query", json={"question": "Why?"})
    client.application.extensions["assistant"].observer.close()
    spans = {span.name: span for span in collector.spans()}
    for name in ("chat stub-model", "invoke_agent rag-assistant"):
        told = {one.key: one.value.string_value for one in spans[name].attributes}
        assert told["error.type"] == "ModelRefused"
    assert b"canary" not in b"".join(collector.bodies)


def test_a_tool_call_is_a_step(client: FlaskClient, services: Services, stub: StubModel, collector: Collector) -> None:
    settings = Path(services.settings.path)
    settings.write_text('{"retrieval_mode": "agent"}')
    until(lambda: services.settings.current.retrieval_mode == "agent")
    calls = [{"id": "a", "name": "list_documents", "arguments": {}}, {"id": "b", "name": "canary", "arguments": {}}]
    stub.replies.extend([Reply(tool_calls=calls), Reply("There are none.")])
    ask(client)
    services.observer.close()
    spans = {span.name: span for span in collector.spans()}
    tool, turn = spans["execute_tool list_documents"], spans["invoke_agent rag-assistant"]
    assert tool.parent_span_id == turn.span_id
    assert b"canary" not in b"".join(collector.bodies)  # A model may invent names.
    assert 'step_seconds_count{step="tool"} 1.0' in client.get("/metrics").text


def test_a_collector_that_is_away_changes_no_answer(
    client: FlaskClient, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.close()
    assert ask(client)["status"] == "completed"


def test_opentelemetry_is_not_loaded_while_it_is_off() -> None:
    code = (
        "import sys; from rag_assistant.runtime.telemetry.metrics import open_observer; open_observer(None); "
        "print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_an_address_without_the_extra_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.delitem(sys.modules, "rag_assistant.runtime.telemetry.tracing", raising=False)
    files = {"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(tmp_path / "none.json")}
    with pytest.raises(SettingsError, match=r"otlp_endpoint needs the package opentelemetry.*\.\[otel\]"):
        create_app(files | {"OTLP_ENDPOINT": "http://x:4318"})
