"""What is counted while people ask, and what /metrics says of it."""

import json
import logging

from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from rag_assistant.server.serve import JsonLines, TextLines
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until, upload


def figures(client: FlaskClient) -> dict[str, float]:
    """Return every sample by its name and labels, as Prometheus writes them."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.mimetype == "text/plain"
    return {
        sample.name.removeprefix("rag_assistant_") + "".join(f" {value}" for value in sample.labels.values()): (
            sample.value
        )
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_an_answer_is_counted_with_all_it_took(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock.")
    usage = {"prompt_tokens": 40, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 16}}
    stub.replies.append(Reply("At seven [1].", usage=usage))
    ask(client, "When does the office close?")
    found = figures(client)
    assert found["turns_total completed "] == 1
    assert [found[f"tokens_total {kind} stub-model"] for kind in ("in", "cached", "out")] == [40, 16, 4]
    assert (found["model_requests_total stub-model"], found["model_cost_total stub-model"]) == (1, 0)
    assert found["first_text_seconds_count"] == 1
    for step in ("turn", "search", "keywords", "vectors", "passages", "fit", "model"):
        assert found[f"step_seconds_count {step}"] >= 1, step
    assert found["running_answers"] == 0
    assert found["max_running_answers"] == 8
    assert found["documents ready"] == 1
    assert found["indexed_chunks"] == 1
    assert found["part database ready"] == 1
    assert (found["jobs now"], found["jobs later"]) == (0, 0)


def test_a_trim_is_counted_by_its_reason(client: FlaskClient) -> None:
    first = ask(client)
    ask(client, "And then?", conversation_id=first["conversation_id"], max_history_turns=0)
    assert figures(client)["trims_total turn_limit"] == 1


def test_failures_and_refusals_are_counted_by_their_type(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=400, body=b'{"error": {"message": "no such model"}}')
    client.post("/api/query", json={"question": "Why?"})
    client.post("/api/query", json={"question": ""})
    client.get("/api/turns/99")
    client.get("/nowhere")
    found = figures(client)
    assert found["turns_total failed ModelRefused"] == 1
    assert "first_text_seconds_count" not in found or found["first_text_seconds_count"] == 0
    for kind in ("InvalidRequest", "TurnNotFound", "NotFound"):
        assert found[f"refusals_total {kind}"] == 1, kind


def test_no_text_and_no_id_is_in_the_figures(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The canary sings.", name="canary.txt")
    stub.default = Reply("The canary answers.")
    answer = ask(client, "Who is the canary?")
    client.get("/canary", headers={"X-Request-Id": "canary-id"})
    text = client.get("/metrics").text
    assert "canary" not in text
    assert f'"{answer["turn_id"]}"' not in text


def test_the_figures_are_for_our_hosts_only(empty: FlaskClient) -> None:
    response = empty.get("/metrics", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert "rag_assistant_" not in response.text


def test_a_database_that_is_away_leaves_the_other_figures(client: FlaskClient, services: Services) -> None:
    until(lambda: "documents ready" in figures(client) or figures(client)["part database ready"] == 1)
    file = services.database.file
    kept = file.rename(file.with_name("kept.db"))
    assert figures(client)["part database missing"] == 1
    kept.replace(file)


def test_a_well_formed_request_id_is_taken_and_another_one_replaced(empty: FlaskClient) -> None:
    taken = empty.get("/healthz", headers={"X-Request-Id": "abc-1:2"})
    assert taken.headers["X-Request-Id"] == "abc-1:2"
    for wrong in ("two words", "<b>", "x" * 129, ""):
        made = empty.get("/healthz", headers={"X-Request-Id": wrong}).headers["X-Request-Id"]
        assert made != wrong
        assert len(made) == 32
    assert len(empty.get("/nowhere").headers["X-Request-Id"]) == 32


def test_the_log_lines_of_an_answer_name_its_request_and_its_turn(client: FlaskClient, stub: StubModel) -> None:
    lines: list[tuple[str, str]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append((JsonLines().format(record), TextLines("%(message)s").format(record)))

    handler, ours = Kept(), logging.getLogger("rag_assistant")
    level = ours.level
    ours.addHandler(handler)
    ours.setLevel("INFO")
    try:
        stub.default = Reply(status=400, body=b'{"error": {"message": "no such model"}}')
        answer = client.post("/api/query", json={"question": "Why?"}, headers={"X-Request-Id": "mine"}).json
        client.get("/healthz")
        ours.warning("Behind it")
    finally:
        ours.removeHandler(handler)
        ours.setLevel(level)
    of_turn = [json.loads(line) for line, _ in lines if f"Turn {answer['turn_id']} failed" in line]
    assert [(line["request_id"], line["turn_id"]) for line in of_turn] == [("mine", answer["turn_id"])]
    assert any(text.endswith(f"[request_id mine, turn_id {answer['turn_id']}]") for _, text in lines)
    assert "turn_id" not in json.loads(lines[-1][0])


def test_readiness_can_ask_the_endpoint(client: FlaskClient, stub: StubModel) -> None:
    until(lambda: client.get("/readyz").status_code == 200)
    assert client.get("/readyz").json["parts"]["model"] == "not_checked"
    asked = client.get("/readyz?model=1")
    assert (asked.status_code, asked.json["parts"]["model"]) == (200, "ready")
    stub.close()
    asked = client.get("/readyz?model=1")
    assert (asked.status_code, asked.json["parts"]["model"]) == (503, "unreachable")
    assert client.get("/readyz").status_code == 200
    refused = client.get("/readyz?model=maybe")
    assert refused.status_code == 422
    assert "model is" in refused.text
