"""Models that people may choose for a question, where the operator offers some."""

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import StubModel
from tests.web.conftest import PAGE, ask, until


@pytest.fixture
def offering(environment: dict[str, str], client: FlaskClient, services: Services) -> FlaskClient:
    Path(environment["SETTINGS_FILE"]).write_text(json.dumps({"models_offered": ["small", "large"]}))
    until(lambda: services.settings.current.models_offered)
    return client


def test_the_chosen_model_answers_that_question_and_its_versions(offering: FlaskClient, stub: StubModel) -> None:
    turn = ask(offering, "Why?", model="large")
    assert (stub.requests[-1].body["model"], turn["model"]) == ("large", "large")
    offering.post(f"/api/turns/{turn['turn_id']}/regenerate")
    until(lambda: offering.get(f"/api/turns/{turn['turn_id']}").json["status"] == "completed")
    assert stub.requests[-1].body["model"] == "large"
    after = ask(offering, "And then?", conversation_id=turn["conversation_id"])
    assert after["model"] == "stub-model"


def test_a_model_that_is_not_offered_is_refused(offering: FlaskClient, client: FlaskClient) -> None:
    refused = offering.post("/api/query", json={"question": "Why?", "model": "huge"})
    assert refused.status_code == 422
    assert refused.json["error"]["message"] == 'The model "huge" is not offered here. Offered: small, large.'


@pytest.mark.long
def test_a_model_that_is_no_longer_offered_answers_no_version(
    environment: dict[str, str], offering: FlaskClient, services: Services, stub: StubModel
) -> None:
    turn = ask(offering, "Why?", model="large")
    Path(environment["SETTINGS_FILE"]).write_text(json.dumps({"models_offered": ["small"]}))
    until(lambda: services.settings.current.models_offered == ("small",))
    offering.post(f"/api/turns/{turn['turn_id']}/regenerate")
    until(lambda: offering.get(f"/api/turns/{turn['turn_id']}").json["status"] == "completed")
    assert stub.requests[-1].body["model"] == "stub-model"


def test_what_is_known_of_the_usual_model_stays_known_when_another_answers(
    offering: FlaskClient, services: Services, stub: StubModel
) -> None:
    stub.models = [{"id": "stub-model", "max_model_len": 4000}, {"id": "large", "max_model_len": 90_000}]
    ask(offering, "Why?")
    usual = services.models.known_endpoint()
    assert usual.context_tokens == 4000
    ask(offering, "And now?", model="large")
    assert services.models.known_endpoint() == usual


def test_the_page_offers_a_choice_and_keeps_it_for_the_conversation(offering: FlaskClient, stub: StubModel) -> None:
    conversation = ask(offering, "Why?", model="small")["conversation_id"]
    assert "<option selected>small</option>" in offering.get(f"/conversations/{conversation}", headers=PAGE).text
    start = offering.get("/", headers=PAGE).text
    assert "<option>small</option>" in start
    assert "<option selected>" not in start
    asked = offering.post("/ask", data={"question": "And now?", "model": "large"}, headers=PAGE)
    assert asked.status_code == 303
    until(lambda: stub.requests[-1].body["model"] == "large")


def test_without_an_offer_there_is_no_choice(client: FlaskClient) -> None:
    assert 'name="model"' not in client.get("/", headers=PAGE).text
