"""Work on documents in the background: cancelled, tried again, replaced, tagged, taken up again; nothing is lost."""

import html
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import insert, select

from rag_assistant.answering.request import KEYWORDS_ALONE
from rag_assistant.errors import EmbedderFailed, ExtractionCancelled, SettingsError
from rag_assistant.factory import create_app
from rag_assistant.runtime.data_dir import QUEUE_FILE
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.keywords import KeywordIndex
from rag_assistant.storage.full_text import CHUNK_WORDS
from rag_assistant.storage.tables import chunks, documents, documents_to_index
from rag_assistant.web.services import Services
from testkit.shelf import KEY
from testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until, upload

FACT = "The lighthouse keeper feeds seventeen geese."
LONG = "\n\n".join(f"Paragraph {n} about geese. " + "Words and words. " * 45 for n in range(60))


def path(document: dict[str, object]) -> str:
    return f"/api/documents/{document['document_id']}"


def found(client: FlaskClient, query: str, **more: object) -> list[dict[str, object]]:
    passages: list[dict[str, object]] = client.get("/api/search", query_string={"q": query} | more).json["passages"]
    return passages


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.documents.embedding.RETRY_BACKOFF_SECONDS", (0.01, 0.01, 0.01))


class Gate:
    """An embedder behind a gate that a test opens; it may also fail."""

    def __init__(self, services: Services) -> None:
        self._embedder = services.embedders.configured().embedder
        self._embed = self._embedder.embed
        self.open = threading.Event()
        self.failures: list[Exception] = []
        self.batches: list[int] = []
        self._embedder.embed = self

    def __call__(self, texts: list[str]):  # type: ignore[no-untyped-def]
        if len(texts) > 1 or "Paragraph" in texts[0]:
            self.batches.append(len(texts))
            assert self.open.wait(10)
            if self.failures:
                raise self.failures.pop(0)
        return self._embed(texts)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.documents.library.LOOK_INTERVAL_SECONDS", 0.05)


@pytest.fixture
def gate(services: Services) -> Iterator[Gate]:
    gate = Gate(services)
    yield gate
    gate.open.set()


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize("noticed", [True, False])
def test_what_waits_is_taken_up_when_the_queue_has_lost_it(
    client: FlaskClient, services: Services, gate: Gate, environment: dict[str, str], noticed: bool
) -> None:
    upload(client, LONG, wait=False)
    until(lambda: gate.batches)
    waiting = upload(client, LONG.replace("geese", "ducks"), wait=False)
    until(lambda: client.get(path(waiting)).json["state"] == "embedding" and services.library.waiting == (1, 0))
    if noticed:
        Path(environment["DATA_DIR"], QUEUE_FILE).unlink()
    else:
        services.library._embedding.forget()
    gate.open.set()
    until(lambda: client.get(path(waiting)).json["state"] == "ready")


def test_a_cancelled_document_is_forgotten_and_can_be_taken_up_again(client: FlaskClient, gate: Gate) -> None:
    document = upload(client, LONG, wait=False)
    until(lambda: gate.batches)
    assert found(client, "geese")
    cancelled = client.post(path(document) + "/cancel").json
    assert (cancelled["state"], cancelled["chunks"]) == ("cancelled", 0)
    assert found(client, "geese") == []
    gate.open.set()
    assert client.post(path(document) + "/retry").status_code == 202
    until(lambda: client.get(path(document)).json["state"] == "ready")
    assert found(client, "geese")


def endless(_path: Path, _media_type: str, *, cancelled: Callable[[], bool], **_: object) -> None:
    """Read until nobody wants it any more, as the real reading of a long document does."""
    while not cancelled():
        time.sleep(0.01)
    raise ExtractionCancelled


def test_a_document_is_cancelled_while_it_is_read(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("rag_assistant.documents.reading.extract", endless)
        document = upload(client, LONG, wait=False)
        until(lambda: client.get(path(document)).json["state"] == "reading")
        assert client.post(path(document) + "/cancel").json["state"] == "cancelled"
    assert upload(client, FACT)["state"] == "ready"
    assert client.get(path(document)).json["state"] == "cancelled"


def cut_without_end(_text: object, _limit: int, refuse: Callable[[], None]) -> None:
    """Cut a text until nobody wants it any more."""
    while True:
        refuse()
        time.sleep(0.01)


def test_a_document_is_deleted_while_it_is_cut(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("rag_assistant.documents.reading.chunk_document", cut_without_end)
        document = upload(client, LONG, wait=False)
        until(lambda: client.get(path(document)).json["state"] == "reading")
        assert client.delete(path(document)).status_code == 204
    assert upload(client, FACT)["state"] == "ready"


def test_a_text_that_takes_too_long_to_cut_fails_with_the_reason(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.documents.reading.chunk_document", cut_without_end)
    monkeypatch.setattr(services.library._reader, "_settings", lambda: Settings(extraction_timeout_seconds=0.05))
    document = upload(client, LONG)
    assert (document["state"], document["reason"]) == (
        "failed",
        "Cutting this text into chunks took too long. Cut the file up.",
    )


def test_a_document_that_is_read_when_the_server_ends_is_taken_up(
    environment: dict[str, str], stand_ins: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, running(environment) as (client, _services):
        patched.setattr("rag_assistant.documents.reading.extract", endless)
        document = upload(client, LONG, wait=False)
        until(lambda: client.get(path(document)).json["state"] == "reading")
    with running(environment) as (client, _services):
        until(lambda: client.get(path(document)).json["state"] == "ready")


def test_cancelling_what_is_done_leaves_it_as_it_is(client: FlaskClient) -> None:
    document = upload(client, FACT)
    assert client.post(path(document) + "/cancel").json["state"] == "ready"
    assert client.post("/api/documents/99/cancel").status_code == 404
    assert client.post("/api/documents/99/retry").status_code == 404


def test_failed_batches_are_tried_again_and_nothing_is_doubled(
    client: FlaskClient, services: Services, gate: Gate, quick_retries: None
) -> None:
    gate.failures = [EmbedderFailed("It rained."), EmbedderFailed("It snowed.")]
    gate.open.set()
    document = upload(client, LONG)
    assert (document["state"], document["reason"]) == ("ready", None)
    assert document["embedded"] == document["chunks"] == len(services.embeddings.vectors_after(KEY, 0, 10_000))
    assert sum(gate.batches) == document["chunks"] + 32, "only the two batches that failed were embedded again"


def test_a_person_sees_that_it_is_tried_again(client: FlaskClient, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.documents.embedding.RETRY_BACKOFF_SECONDS", (1.0,))
    gate.failures = [EmbedderFailed("The model is asleep.")]
    gate.open.set()
    document = upload(client, LONG, wait=False)
    until(lambda: client.get(path(document)).json["reason"])
    said = client.get(path(document)).json
    assert (said["state"], said["reason"]) == ("embedding", "The model is asleep. It is tried again in 1 seconds.")
    until(lambda: client.get(path(document)).json["state"] == "ready")
    assert client.get(path(document)).json["reason"] is None


def test_an_embedder_that_stays_away_fails_the_document_but_words_find_it(
    client: FlaskClient, gate: Gate, quick_retries: None
) -> None:
    gate.failures = [EmbedderFailed("Gone.")] * 4
    gate.open.set()
    document = upload(client, LONG)
    assert document["state"] == "failed"
    assert document["reason"] == "Gone. Words find it; its embeddings are missing."
    assert found(client, "geese")
    client.post(path(document) + "/retry")
    until(lambda: client.get(path(document)).json["state"] == "ready")


def test_a_document_that_is_deleted_while_it_waits_for_the_embedder_is_given_up(
    client: FlaskClient, services: Services, gate: Gate, quick_retries: None
) -> None:
    gate.failures = [EmbedderFailed("Gone.")] * 2
    document = upload(client, LONG, wait=False)
    until(lambda: gate.batches)
    client.delete(path(document))
    gate.open.set()
    until(lambda: not services.library.busy)


def test_a_newer_version_takes_the_place_without_a_gap(client: FlaskClient, services: Services, gate: Gate) -> None:
    gate.open.set()
    old = upload(client, FACT)
    gate.open.clear()
    response = client.post("/api/documents", data={"file": (as_file(LONG), "new.txt"), "replaces": old["document_id"]})
    newer = response.json
    assert newer["replaces"] == old["document_id"]
    until(lambda: gate.batches)
    assert [p["document_id"] for p in found(client, "geese")] == [old["document_id"]]
    assert "seventeen" in str(found(client, "geese")[0]["text"])
    gate.open.set()
    until(lambda: client.get(path(newer)).status_code == 404)
    now = client.get(path(old)).json
    assert (now["state"], now["sha256"], now["name"]) == ("ready", newer["sha256"], "note.txt")
    assert "Paragraph" in str(found(client, "geese")[0]["text"])
    assert len(list((services.data_dir / "uploads").iterdir())) == 1


def as_file(text: str) -> io.BytesIO:
    return io.BytesIO(text.encode())


def test_what_is_replaced_must_be_there(client: FlaskClient, services: Services) -> None:
    for wrong, status, words in ((99, 404, "document 99"), ("x", 422, 'replaces is "x"'), (0, 422, "replaces is 0")):
        response = client.post("/api/documents", data={"file": (as_file(FACT), "a.txt"), "replaces": wrong})
        assert response.status_code == status, response.text
        assert words in response.json["error"]["message"]
    uploads = services.data_dir / "uploads"
    assert not uploads.exists() or not list(uploads.iterdir())


def test_tags_are_given_changed_and_listed(client: FlaskClient) -> None:
    document = client.post("/api/documents", data={"file": (as_file(FACT), "a.txt"), "tags": "birds, sea ,birds"}).json
    assert document["tags"] == ["birds", "sea"]
    assert client.get("/api/documents/tags").json == {"tags": {"birds": 1, "sea": 1}}
    assert client.get("/api/documents?tag=sea").json["documents"][0]["document_id"] == document["document_id"]
    assert client.get("/api/documents?tag=land").json["documents"] == []
    changed = client.patch(path(document), json={"tags": ["land"], "name": " b.txt "}).json
    assert (changed["tags"], changed["name"]) == (["land"], "b.txt")
    for name in ("../b.txt", "a\\b.txt", "\u202eb.txt", " ", "x" * 256):
        response = client.patch(path(document), json={"name": name})
        assert response.status_code == 422
        assert "a text of 1 to 255 characters without slashes or invisible" in response.json["error"]["message"]
    response = client.patch(path(document), json={"tags": ["a,b"]})
    assert response.status_code == 422
    assert "without commas" in response.json["error"]["message"]


def test_a_question_is_answered_from_documents_with_a_tag(client: FlaskClient, stub: StubModel) -> None:
    client.post("/api/documents", data={"file": (as_file(FACT), "a.txt"), "tags": "birds"})
    upload(client, "Geese are also a card game.", "b.txt")
    until(lambda: len(found(client, "geese")) == 2)
    assert [p["document"] for p in found(client, "geese", tag="birds")] == ["a.txt"]
    answer = ask(client, "What about geese?", tags=["birds"])
    assert [source["document"] for source in answer["sources"]] == ["a.txt"]
    response = client.post("/api/query", json={"question": "Geese?", "tags": ["fish"]})
    assert response.status_code == 422
    assert response.json["error"]["message"] == 'No document has the tag "fish". There are: birds.'


def test_search_may_name_documents(client: FlaskClient) -> None:
    upload(client, FACT, "a.txt")
    other = upload(client, "Geese are also a card game.", "b.txt")
    assert [p["document"] for p in found(client, "geese", document_id=other["document_id"])] == ["b.txt"]
    response = client.get("/api/search?q=x&document_id=y")
    assert response.status_code == 422
    assert 'document_id is "y"' in response.json["error"]["message"]


def active_key(services: Services) -> str:
    active = services.embeddings.serving()
    return active.key if active else ""


@contextmanager
def running(environment: dict[str, str], **more: str) -> Iterator[tuple[FlaskClient, Services]]:
    """Start the application with other settings over the same data."""
    app = create_app(environment | more)
    services: Services = app.extensions["assistant"]
    services.start()
    try:
        yield app.test_client(), services
    finally:
        services.close()


def test_an_endpoint_embeds_and_a_change_is_made_good_in_the_background(
    environment: dict[str, str], stub: StubModel, app: object, client: FlaskClient, services: Services
) -> None:
    upload(client, FACT, "a.txt")
    services.close()
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        until(lambda: active_key(services).startswith("endpoint-embed-1#"), 10)
        assert [p["document"] for p in found(client, "lighthouse")] == ["a.txt"]
        first_key = active_key(services)
        until(lambda: [known.key for known in services.embeddings.known()] == [first_key])
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


def test_a_change_of_model_is_finished_whatever_comes_between(
    environment: dict[str, str], stub: StubModel, stand_ins: None, quick_retries: None
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
    environment: dict[str, str], stub: StubModel, stand_ins: None, quick_retries: None
) -> None:
    with running(environment) as (client, _services):
        upload(client, FACT, "a.txt")
    stub.embedding_replies.extend([Reply(status=503) for _ in range(12)])
    with running(environment, EMBEDDER="endpoint:embed-1") as (client, services):
        until(lambda: active_key(services).startswith("endpoint-embed-1#"), 15)
        assert found(client, "lighthouse")


def test_the_key_of_one_endpoint_is_not_sent_to_another(
    environment: dict[str, str], stub: StubModel, stand_ins: None
) -> None:
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
    environment: dict[str, str], stub: StubModel, stand_ins: None, quick_retries: None
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


@pytest.mark.parametrize("wrong", ["word2vec", "endpoint", "endpoint:", "chroma:", "chroma:A B", "chroma:nope"])
def test_a_wrong_embedder_stops_the_start(environment: dict[str, str], wrong: str) -> None:
    with pytest.raises(
        SettingsError, match=f'embedder is "{wrong}"; it must be builtin, builtin-multilingual, or endpoint'
    ):
        create_app(environment | {"EMBEDDER": wrong})


def test_after_an_upgrade_words_are_indexed_behind_the_questions_and_a_kill_loses_nothing(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("Grey geese.", "White swans.", "Black crows."):
        upload(client, text)
    with services.database.write() as connection:
        CHUNK_WORDS.drop(connection, select(chunks.c.id))
        connection.execute(insert(documents_to_index).from_select(["document_id"], select(documents.c.id)))
    whole = services.chunks.index

    def until_killed(document_id: int, *rest: Any) -> None:
        if document_id > 1:
            raise ExtractionCancelled
        whole(document_id, *rest)

    monkeypatch.setattr(services.chunks, "index", until_killed)
    services.library.index_words()
    until(lambda: not services.library.busy)
    assert [len(KeywordIndex(services.database).search([word], 5)) for word in ("gees", "swan", "crow")] == [1, 0, 0]
    assert [found(client, name)[0]["text"] for name in ("geese", "swans", "crows")] == [
        "Grey geese.", "White swans.", "Black crows.",
    ]  # fmt: skip
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json["parts"]["keywords"]) == (200, "indexing")
    assert "2 documents are still to be indexed by keyword" in client.get("/documents").text
    (finding,) = services.doctor(with_chroma=False).examine()
    monkeypatch.undo()
    assert finding.mend is not None
    finding.mend()
    until(lambda: not services.documents.waiting_to_be_indexed())
    assert [len(KeywordIndex(services.database).search([word], 5)) for word in ("gees", "swan", "crow")] == [1, 1, 1]
    assert client.get("/readyz").json["parts"]["keywords"] == "ready"
    assert "still to be indexed" not in client.get("/documents").text
    assert list(services.doctor(with_chroma=False).examine()) == []
