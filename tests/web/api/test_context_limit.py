"""What the model takes at most: learnt from its list, from what it refuses, and from what it counts."""

from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import conversation_of
from tests.web.conftest import ask, events_of


def test_a_request_that_is_too_long_is_fitted_again_once(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 4)
    body = b'{"error": {"code": "context_length_exceeded", "message": "This model\'s maximum context length is 700 tokens. However, your messages resulted in 900 tokens."}}'  # noqa: E501
    stub.replies.extend([Reply(status=400, body=body), Reply("It fits.")])
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
