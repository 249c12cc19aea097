"""A reranking model at an endpoint puts the passages in order; where it fails, their order stays, and that is said."""

import json
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from rag_assistant.retrieval import postprocess
from rag_assistant.retrieval.search import NOT_RERANKED
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask

ONE = "The lighthouse keeper feeds geese at the lighthouse."
OTHER = "A lighthouse stands on rocks, and ships pass it."


# The search alone puts the first in front.
pytestmark = [pytest.mark.library(("one.txt", ONE), ("other.txt", OTHER)), pytest.mark.settings(RERANK_MODEL="ranker")]


@pytest.fixture
def elsewhere(environment: dict[str, str], stub: StubModel) -> Iterator[FlaskClient]:
    """An application whose reranking endpoint is another one than that which answers."""
    app = create_app(environment | {"RERANK_BASE_URL": stub.url.replace("127.0.0.1", "localhost")})
    services: Services = app.extensions["assistant"]
    services.start()
    yield app.test_client()
    services.close()


def found(client: FlaskClient, query: str = "geese at the lighthouse") -> list[str]:
    passages = client.get("/api/search", query_string={"q": query}).json["passages"]
    return [one["document"] for one in passages]


def test_the_reranking_model_orders_the_passages(client: FlaskClient, stub: StubModel) -> None:
    stub.relevance = lambda text: float("ships" in text)
    assert found(client) == ["other.txt", "one.txt"]
    (seen,) = stub.rerank_requests
    assert seen.body["model"] == "ranker"
    assert seen.body["query"] == "geese at the lighthouse"
    assert seen.body["documents"][0] == f"one.txt\n{ONE}"
    assert seen.headers["authorization"] == "Bearer sk-canary-secret"


def test_a_passage_without_a_score_stands_behind_the_others(client: FlaskClient, stub: StubModel) -> None:
    only = json.dumps({"results": [{"index": 1, "relevance_score": -3.5}]}).encode()
    stub.rerank_replies.append(Reply(body=only))
    assert found(client) == ["other.txt", "one.txt"]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=401, body=b'{"error": {"message": "bad key sk-canary-secret"}}'),
        pytest.param(Reply(status=503), marks=pytest.mark.long),
        Reply(body=b"no JSON"),
        pytest.param(Reply(body=b"[]"), marks=pytest.mark.long),
        pytest.param(Reply(body=b'{"results": []}'), marks=pytest.mark.long),
        Reply(body=b'{"results": [{"index": 7, "relevance_score": 1}]}'),
        pytest.param(Reply(body=b'{"results": [{"index": 0, "relevance_score": NaN}]}'), marks=pytest.mark.long),
        pytest.param(Reply(body=b'{"results": [{"index": 0}]}'), marks=pytest.mark.long),
    ],
)
def test_a_reranking_model_that_fails_leaves_the_order_as_it_was(
    client: FlaskClient, stub: StubModel, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    stub.relevance = lambda text: float("ships" in text)
    stub.rerank_replies.append(reply)
    answer = ask(client, "Who feeds geese at the lighthouse?")
    assert [one["document"] for one in answer["sources"]] == ["one.txt", "other.txt"]
    assert NOT_RERANKED in answer["notes"]
    assert f'The reranking model "ranker" at {stub.url}' in caplog.text
    assert "sk-canary" not in caplog.text


def test_after_a_failure_the_model_is_left_alone_for_a_while(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.relevance = lambda text: float("ships" in text)
    stub.rerank_replies.append(Reply(status=503))
    assert found(client) == found(client) == ["one.txt", "other.txt"]
    assert len(stub.rerank_requests) == 1
    monkeypatch.setattr(postprocess.time, "monotonic", lambda now=postprocess.time.monotonic: now() + 31)
    assert found(client) == ["other.txt", "one.txt"]
    assert NOT_RERANKED not in ask(client, "Who feeds geese at the lighthouse?")["notes"]


def test_what_has_nothing_to_do_with_the_library_is_not_reranked(client: FlaskClient, stub: StubModel) -> None:
    assert found(client, "quantum chromodynamics") == []
    assert stub.rerank_requests == []


def test_the_key_of_the_answering_endpoint_is_not_sent_to_another(elsewhere: FlaskClient, stub: StubModel) -> None:
    assert len(found(elsewhere)) == 2
    assert [seen.headers["authorization"] for seen in stub.rerank_requests] == ["Bearer none"]


def test_the_connection_test_asks_the_reranking_model_too(client: FlaskClient, stub: StubModel) -> None:
    steps = client.post("/api/model/test").json["steps"]
    names = ["models", "answer", "context", "reranking"]
    assert [(one["name"], one["ok"]) for one in steps] == [(name, True) for name in names]
    assert steps[-1]["message"] == "The reranking model answered."
    stub.rerank_replies.append(Reply(status=404, body=b'{"error": {"message": "no such path"}}'))
    failed = client.post("/api/model/test").json
    assert failed["ok"] is False
    assert failed["steps"][-1]["message"] == (
        f'The reranking model "ranker" at {stub.url} refused the request (404): no such path.'
    )
