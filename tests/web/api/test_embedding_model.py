"""The model that embeds documents: one at an endpoint, another one in its place, one that fails, and none."""

import html

import pytest
from flask.testing import FlaskClient

from rag_assistant.records.errors import SettingsError
from rag_assistant.retrieval.search import KEYWORDS_ALONE
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.shelf import KEY
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.documents import FACT, found, path, running
from tests.web.conftest import until, upload


def active_key(services: Services) -> str:
    active = services.embeddings.serving()
    return active.key if active else ""


def test_an_endpoint_embeds_and_a_change_is_made_good_in_the_background(
    environment: dict[str, str], stub: StubModel, app: object, client: FlaskClient, services: Services
) -> None:
    upload(client, FACT, "a.txt")
    services.close()
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        until(lambda: active_key(services).startswith("endpoint-embed-1#"), 10)
        assert [p["document"] for p in found(client, "lighthouse")] == ["a.txt"]
        first_key = active_key(services)
        until(lambda: [known.key for known in services.embeddings.models()] == [first_key])
        sent = stub.embedding_requests[-1]
        assert sent.body["model"] == "embed-1"
        assert sent.headers["authorization"] == "Bearer sk-canary-secret"
    # The same name, but another model stands behind it now.
    usual = stub.embed
    stub.embed = lambda texts: [row[::-1] for row in usual(texts)]
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        until(lambda: active_key(services) not in (KEY, first_key), 10)
        assert [p["document"] for p in found(client, "lighthouse")] == ["a.txt"]
        assert client.get(path({"document_id": 1})).json["state"] == "ready"


@pytest.mark.long
def test_a_change_of_model_is_finished_whatever_comes_between(
    environment: dict[str, str], stub: StubModel, quick_retries: None
) -> None:
    with running(environment) as (client, services):
        for number in range(3):
            upload(client, f"Geese number {number}.", f"{number}.txt")
    refused = stub.embed
    stub.embed = lambda texts: 1 / 0 if any("number 1" in text for text in texts) else refused(texts)
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        until(lambda: services.embedders.loaded)
        client.delete("/api/documents/1")
        upload(client, "Swans.", "swans.txt")
        until(lambda: active_key(services).startswith("endpoint-embed-1#"), 15)
        states = {one["name"]: one["state"] for one in client.get("/api/documents").json["documents"]}
        assert states == {"1.txt": "failed", "2.txt": "ready", "swans.txt": "ready"}
        assert found(client, "geese number 1")[0]["document"] == "1.txt", "words find it"


def test_an_endpoint_that_comes_back_is_used_without_a_start(
    environment: dict[str, str], stub: StubModel, quick_retries: None
) -> None:
    with running(environment) as (client, _services):
        upload(client, FACT, "a.txt")
    stub.embedding_replies.extend([Reply(status=503) for _ in range(4)])
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        until(lambda: active_key(services).startswith("endpoint-embed-1#"), 15)
        assert found(client, "lighthouse")


def test_the_vectors_of_a_model_that_is_no_longer_supported_are_replaced(
    environment: dict[str, str], stub: StubModel, quick_retries: None, caplog: pytest.LogCaptureFixture
) -> None:
    with running(environment) as (client, services):
        upload(client, FACT, "a.txt")
        services.embeddings.keep(KEY, {"embedder": "chroma:ollama"}, 384, None)
    stub.embedding_replies.extend([Reply(status=503) for _ in range(4)])
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        assert found(client, "lighthouse"), "words find it"
        until(lambda: active_key(services).startswith("endpoint-embed-1#"), 15)
    assert 'The embedding model "chroma:ollama" is no longer supported.' in caplog.text


@pytest.mark.long
def test_the_key_of_one_endpoint_is_not_sent_to_another(environment: dict[str, str], stub: StubModel) -> None:
    own = {"EMBEDDER": "endpoint:e", "EMBEDDING_BASE_URL": stub.url.replace("127.0.0.1", "localhost")}
    with running(environment, **own) as (client, _services):
        upload(client, FACT, "a.txt")
    assert stub.embedding_requests
    assert all("sk-canary" not in str(seen.headers) for seen in stub.embedding_requests)
    stub.embedding_requests.clear()
    with running(environment, **own, EMBEDDING_API_KEY="sk-other") as (client, _services):
        upload(client, FACT + "!", "b.txt")
    assert {seen.headers["authorization"] for seen in stub.embedding_requests} == {"Bearer sk-other"}


def test_an_embedding_endpoint_that_fails_is_named_without_its_key(
    environment: dict[str, str], stub: StubModel, quick_retries: None
) -> None:
    stub.embedding_replies.extend(
        [Reply(status=401, body=b'{"error": {"message": "bad key sk-canary-secret"}}') for _ in range(50)]
    )
    with running(environment, EMBEDDER="endpoint:e") as (client, services):
        document = upload(client, FACT, "a.txt")
        assert document["state"] == "failed"
        assert "refused the request (401): bad key [the key]" in document["reason"]
        assert [p["document"] for p in found(client, "lighthouse")] == ["a.txt"]
        assert client.get("/readyz").json["parts"]["embedder"] == "failed"
        page = html.unescape(client.get("/").text)
        assert f'The embedding model "e" at {stub.url} refused the request (401): bad key [the key].' in page
        assert "Until it works, documents may be found by keyword only." in page
        answer = client.post("/api/query", json={"question": "Who feeds geese at the lighthouse?"}).json
        assert KEYWORDS_ALONE in answer["notes"]
        assert "sk-canary" not in str(services.documents.get(1))


@pytest.mark.parametrize("wrong", ["word2vec", "endpoint", "endpoint:", "chroma:ollama"])
def test_a_wrong_embedder_stops_the_start(environment: dict[str, str], wrong: str) -> None:
    with pytest.raises(
        SettingsError, match=f'embedder is "{wrong}"; it must be builtin, builtin-multilingual, or endpoint:MODEL'
    ):
        create_app(environment | {"EMBEDDER": wrong})
