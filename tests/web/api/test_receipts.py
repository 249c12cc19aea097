"""The receipts of a conversation as a signed file, what an erased turn leaves of it, and a request sent again."""

import io
import json
from typing import Any

from flask.testing import FlaskClient

from rag_assistant.history.receipt_chain import check_chain
from rag_assistant.runtime.signing import is_signed
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until


def file_of(client: FlaskClient, conversation: int) -> tuple[list[dict[str, Any]], str]:
    """Return the receipts of a conversation, checked, and the text of the file."""
    response = client.get(f"/api/conversations/{conversation}/receipts")
    assert (response.status_code, response.mimetype) == (200, "application/x-ndjson")
    seal, _ = check_chain(io.BytesIO(response.data))
    assert seal.key == client.get("/api/receipts/key").json["public_key"]
    assert is_signed(seal.signed, seal.signature, seal.key)
    return [json.loads(line) for line in response.data.splitlines()][:-1], response.text


def test_the_receipts_of_a_conversation_are_a_signed_chain(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "Where is the key?")["conversation_id"]
    first, _ = file_of(client, conversation)
    ask(client, "And the boat?", conversation_id=conversation)
    links, _ = file_of(client, conversation)
    assert links[:1] == first
    assert [(one["turn"], one["version"], one["previous"]) for one in links] == [(1, 1, ""), (2, 1, first[0]["hash"])]
    messages = [part["value"] for name, part in links[1]["parts"].items() if ", message " in name]
    assert len(messages) == len(stub.requests[-1].messages)
    assert all(message in messages for message in stub.requests[-1].messages)
    assert links[1]["parts"]["answer"]["value"] == "An answer."
    assert file_of(client, conversation)[0] == links


def test_an_erased_turn_leaves_the_chain_valid_and_no_text_behind(client: FlaskClient) -> None:
    conversation = ask(client, "The safe opens with sesame.")["conversation_id"]
    for question in ("And the boat?", "And the oil?"):
        ask(client, question, conversation_id=conversation)
    before, _ = file_of(client, conversation)
    assert client.delete("/api/turns/1?permanently=1").status_code == 200
    after, text = file_of(client, conversation)
    assert "sesame" not in text
    assert [one["hash"] for one in after] == [one["hash"] for one in before]
    assert all(set(part) == {"hash", "erased_at"} for part in after[0]["parts"].values())
    assert sum("hash" in part for part in after[1]["parts"].values()) < len(after[1]["parts"]) / 2
    client.delete("/api/turns/2?permanently=1")
    again, _ = file_of(client, conversation)
    assert [one["hash"] for one in again] == [one["hash"] for one in before]
    fresh = ask(client, "And now?", conversation_id=conversation)["turn"]
    assert file_of(client, conversation)[0][-1]["turn"] == fresh


def test_every_answer_of_a_turn_has_its_receipt_in_the_chain(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "Where is the key?")["conversation_id"]
    file_of(client, conversation)
    stub.replies.append(Reply("In the boat."))
    client.post("/api/turns/1/regenerate")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    links, _ = file_of(client, conversation)
    assert [(one["version"], one["parts"]["answer"]["value"]) for one in links] == [
        (1, "An answer."),
        (2, "In the boat."),
    ]
    client.post("/api/turns/1/versions", json={"version": 1})
    assert file_of(client, conversation)[0] == links


def test_a_request_is_sent_again_and_the_answers_are_compared(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client, "Where is the key?")["turn_id"]
    assert client.post(f"/api/turns/{turn}/replay").json["difference"] == []
    stub.replies.append(Reply("An answer. Another one."))
    replayed = client.post(f"/api/turns/{turn}/replay").json
    assert stub.requests[-1].body == stub.requests[0].body
    assert replayed["difference"] == ["--- then", "+++ now", "@@ -1 +1,2 @@", " An answer.", "+Another one."]
    assert (replayed["answer"], replayed["replayed"]) == ("An answer.", "An answer. Another one.")
    assert client.get("/api/conversations/1/turns").json["total"] == 1
