"""Work on documents in the background: cancelled, tried again, replaced, taken up again; nothing is lost."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.records.errors import EmbedderFailed, ExtractionCancelled
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings
from tests.testkit.shelf import KEY
from tests.web.api.documents import FACT, as_file, found, path, running
from tests.web.conftest import until, upload

LONG = "\n\n".join(f"Paragraph {n} about geese. " + "Words and words. " * 45 for n in range(40))


class Gate:
    """An embedder behind a gate that a test opens; it may also fail."""

    def __init__(self, services: Services) -> None:
        self._embedder = services.embedders.configured()
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
    monkeypatch.setattr("rag_assistant.documents.processing.LOOK_INTERVAL_SECONDS", 0.05)


@pytest.fixture
def gate(services: Services) -> Iterator[Gate]:
    gate = Gate(services)
    yield gate
    gate.open.set()


@pytest.mark.long
@pytest.mark.usefixtures("quick_looks")
def test_what_waits_is_taken_up_when_the_queue_has_lost_it(client: FlaskClient, services: Services, gate: Gate) -> None:
    upload(client, LONG, wait=False)
    until(lambda: gate.batches)
    waiting = upload(client, LONG.replace("geese", "ducks"), wait=False)
    until(lambda: client.get(path(waiting)).json["state"] == "embedding" and services.processing.waiting == (1, 0))
    services.processing._embedding._now.clear()
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


@pytest.mark.long
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
    reader = replace(services.processing._reader, settings=lambda: Settings(extraction_timeout_seconds=0.05))
    services.processing._reading.offer("read", services.processing._job(reader.read), priority=1)
    document = upload(client, LONG)
    assert (document["state"], document["reason"]) == (
        "failed",
        "Splitting this text into chunks took too long. Split the file.",
    )


@pytest.mark.long
def test_a_document_that_is_read_when_the_server_ends_is_taken_up(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
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


@pytest.mark.long
def test_a_person_sees_that_it_is_tried_again(client: FlaskClient, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.documents.embedding.RETRY_BACKOFF_SECONDS", (1.0,))
    gate.failures = [EmbedderFailed("The model is asleep.")]
    gate.open.set()
    document = upload(client, LONG, wait=False)
    until(lambda: client.get(path(document)).json["reason"])
    said = client.get(path(document)).json
    assert (said["state"], said["reason"]) == ("embedding", "The model is asleep. Trying again in 1 seconds.")
    until(lambda: client.get(path(document)).json["state"] == "ready")
    assert client.get(path(document)).json["reason"] is None


def test_an_embedder_that_stays_away_fails_the_document_but_words_find_it(
    client: FlaskClient, gate: Gate, quick_retries: None
) -> None:
    gate.failures = [EmbedderFailed("Gone.")] * 4
    gate.open.set()
    document = upload(client, LONG)
    assert document["state"] == "failed"
    assert document["reason"] == "Gone. It is found by keyword only: its embeddings are missing."
    assert found(client, "geese")
    client.post(path(document) + "/retry")
    until(lambda: client.get(path(document)).json["state"] == "ready")


@pytest.mark.long
def test_a_document_that_is_deleted_while_it_waits_for_the_embedder_is_given_up(
    client: FlaskClient, services: Services, gate: Gate, quick_retries: None
) -> None:
    gate.failures = [EmbedderFailed("Gone.")] * 2
    document = upload(client, LONG, wait=False)
    until(lambda: gate.batches)
    client.delete(path(document))
    gate.open.set()
    until(lambda: not services.processing.busy)


@pytest.mark.long
def test_a_small_document_behind_a_large_one_is_ready_soon(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.documents.embedding.MAX_CHUNKS_IN_A_ROW", 32)
    embedder, seen, gate = services.embedders.configured(), list[str](), threading.Event()
    embed = embedder.embed

    def gated(texts: list[str]) -> Any:
        seen.append("large" if len(texts) > 1 else "small")
        assert seen[-1] == "small" or gate.wait(10)
        return embed(texts)

    embedder.embed = gated
    large = upload(client, "\n\n".join(f"Paragraph {n}. {'Geese hiss. ' * 60}" for n in range(150)), wait=False)
    until(lambda: seen)
    small = upload(client, "Ducks quack.", "small.txt", wait=False)
    until(lambda: client.get(path(small)).json["state"] == "embedding")
    gate.set()
    for document in (small, large):
        until(lambda: client.get(path(document)).json["state"] == "ready")  # noqa: B023
    assert seen.index("small") == 1 < len(seen) - 3, "after the batch at hand"


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
    until(lambda: client.get(path(newer)).json["document_id"] != newer["document_id"])
    now = client.get(path(old)).json
    assert (now["state"], now["sha256"], now["name"]) == ("ready", newer["sha256"], "note.txt")
    assert "Paragraph" in str(found(client, "geese")[0]["text"])
    assert len(list((services.data_dir / "uploads").iterdir())) == 1


def test_what_is_replaced_must_be_there(client: FlaskClient, services: Services) -> None:
    for wrong, status, words in ((99, 404, "document 99"), ("x", 422, 'replaces is "x"'), (0, 422, "replaces is 0")):
        response = client.post("/api/documents", data={"file": (as_file(FACT), "a.txt"), "replaces": wrong})
        assert response.status_code == status, response.text
        assert words in response.json["error"]["message"]
    uploads = services.data_dir / "uploads"
    assert not uploads.exists() or not list(uploads.iterdir())
