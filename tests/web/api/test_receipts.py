"""The receipts of a conversation as a file, and what an erased turn leaves of it."""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.storage.conversations import versions
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until


def file_of(client: FlaskClient, conversation: int) -> tuple[list[dict[str, Any]], str]:
    """Return the receipts of a conversation, and the text of the file."""
    response = client.get(f"/api/conversations/{conversation}/receipts")
    assert (response.status_code, response.mimetype) == (200, "application/x-ndjson")
    return [json.loads(line) for line in response.data.splitlines()], response.text


def test_the_receipts_of_a_conversation_are_a_file(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "Where is the key?")["conversation_id"]
    first, _ = file_of(client, conversation)
    ask(client, "And the boat?", conversation_id=conversation)
    receipts, _ = file_of(client, conversation)
    assert receipts[:1] == first
    assert [(one["turn"], one["version"], one["answer"]) for one in receipts] == [
        (1, 1, "An answer."),
        (2, 1, "An answer."),
    ]
    assert receipts[1]["receipt"]["request"]["messages"] == stub.requests[-1].messages
    assert client.get("/api/conversations/9/receipts").status_code == 404


def test_nothing_of_an_erased_turn_is_in_the_file(client: FlaskClient) -> None:
    conversation = ask(client, "The safe opens with sesame.")["conversation_id"]
    ask(client, "And the boat?", conversation_id=conversation)
    before, text = file_of(client, conversation)
    assert "sesame" in json.dumps(before[1])
    assert client.delete("/api/turns/1?permanently=1").status_code == 200
    after, text = file_of(client, conversation)
    assert [one["turn"] for one in after] == [2]
    assert "sesame" not in text


def test_every_answer_of_a_turn_has_its_receipt_in_the_file(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "Where is the key?")["conversation_id"]
    stub.replies.append(Reply("In the boat."))
    client.post("/api/turns/1/regenerate")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    receipts, _ = file_of(client, conversation)
    assert [(one["version"], one["answer"]) for one in receipts] == [(1, "An answer."), (2, "In the boat.")]
    client.post("/api/turns/1/versions", json={"version": 1})
    assert file_of(client, conversation)[0] == receipts


def test_long_conversations_are_read_in_pages(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = ask(client, "Question 1")["conversation_id"]
    for n in (2, 3):
        ask(client, f"Question {n}", conversation_id=conversation)
    whole, _ = file_of(client, conversation)
    monkeypatch.setattr(versions, "_FINISHED", versions._FINISHED.limit(2))
    assert file_of(client, conversation)[0] == whole
    assert [one["turn"] for one in whole] == [1, 2, 3]
