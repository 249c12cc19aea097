"""What the model takes at most: learnt from its list, from what it refuses, and from what it counts."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import conversation_of
from tests.web.conftest import ask, events_of

BODY = b'{"error": {"code": "context_length_exceeded", "message": "This model\'s maximum context length is 700 tokens. However, your messages resulted in 900 tokens."}}'  # noqa: E501


def test_a_request_that_is_too_long_is_fitted_again_once(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 4)
    stub.replies.extend([Reply(status=400, body=BODY), Reply("It fits.")])
    answer = ask(client, "Question 5.", conversation_id=conversation)
    assert answer["answer"] == "It fits."
    assert answer["history"]["tokens"]["limit"] == 700
    assert answer["history_trimmed"] is True
    assert answer["history"]["reason"] == "token_limit"
    assert len(stub.requests[-1].messages) < len(stub.requests[-2].messages)
    replayed = events_of(client.get(f"/api/turns/{answer['turn_id']}/stream").data)
    assert [name for name, _, _ in replayed] == ["start", "token", "end"]
    requests = len(stub.requests)
    ask(client, "Question 6.", conversation_id=conversation)
    assert len(stub.requests) == requests + 1


def test_a_second_refusal_is_final(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 4)
    stub.default = Reply(
        status=400, body=b'{"error": {"type": "exceed_context_size_error", "n_ctx": 600, "n_prompt_tokens": 900}}'
    )
    requests = len(stub.requests)
    refused = client.post("/api/query", json={"question": "Question 5.", "conversation_id": conversation})
    assert refused.status_code == 502
    assert refused.json["error"]["type"] == "ContextTooLong"
    assert len(stub.requests) == requests + 2


def test_the_limit_is_taken_from_the_list_of_models(client: FlaskClient, stub: StubModel) -> None:
    stub.models = [{"id": "stub-model", "object": "model", "max_model_len": 4321}]
    assert ask(client)["history"]["tokens"]["limit"] == 4321


def test_token_figures_are_corrected_by_what_the_provider_counts(client: FlaskClient, stub: StubModel) -> None:
    question = "A question of some length. " * 100
    stub.replies.append(Reply("A.", usage={"prompt_tokens": 2000, "completion_tokens": 1}))
    first = ask(client, question)["history"]["tokens"]["total"]
    second = ask(client, question)["history"]["tokens"]["total"]
    assert first < 1100
    assert abs(second - 2000) < 60


class TestNamed:
    """A limit that an endpoint named as it refused a request, below the one in its list."""

    @pytest.fixture
    def answer(self, client: FlaskClient, stub: StubModel) -> dict[str, Any]:
        stub.models = [{"id": "stub-model", "object": "model", "max_model_len": 32_768}]
        conversation = conversation_of(client, 4)
        stub.replies.extend([Reply(status=400, body=BODY), Reply("It fits.")])
        return ask(client, "Question 5.", conversation_id=conversation)

    def test_it_is_told_where_it_acts(self, client: FlaskClient, services: Services, answer: dict[str, Any]) -> None:
        later = ask(client, "Question 6.", conversation_id=answer["conversation_id"])
        guess = services.models.known_endpoint().guess
        assert guess is not None
        assert guess.limit == later["history"]["tokens"]["limit"] == 700
        for one in (answer, later):
            receipt = client.get(f"/api/turns/{one['turn_id']}/receipt").json
            assert (guess.sentence in one["notes"], receipt["limit_guess"]) == (True, guess.sentence)
        assert guess.sentence in client.get("/settings").text

    def test_a_question_that_is_longer_is_refused_with_it(
        self, client: FlaskClient, stub: StubModel, answer: dict[str, Any]
    ) -> None:
        requests = len(stub.requests)
        response = client.post("/api/query", json={"question": "They were seen by the lake, too. " * 150})
        assert response.json["error"]["type"] == "QuestionDoesNotFit"
        assert len(stub.requests) == requests

    @pytest.mark.parametrize("how", ["a day", "a passed test", "a failed test", "away"])
    def test_it_is_forgotten_as_a_guess_is(
        self,
        client: FlaskClient,
        stub: StubModel,
        services: Services,
        monkeypatch: pytest.MonkeyPatch,
        answer: dict[str, Any],
        how: str,
    ) -> None:
        assert services.models.known_endpoint().context_tokens == 700
        if how == "a day":
            monkeypatch.setattr("rag_assistant.llm.calibration.TO_FORGET", timedelta(0))
        elif how == "away":
            stub.close()
        elif how == "a failed test":
            stub.default = Reply(status=401)
        if how.endswith("test"):
            client.post("/api/model/test")
        else:
            client.post("/api/query", json={"question": "Why?"})
        assert services.models.known_endpoint().context_tokens == 32_768
