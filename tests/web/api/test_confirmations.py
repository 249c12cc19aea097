"""A deletion that the model calls for waits for a person's word: yes, no, or something else first."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update

from rag_assistant.answering.answer import answer
from rag_assistant.answering.live import LiveTurn
from rag_assistant.records import Question
from rag_assistant.services import Services
from rag_assistant.storage.tables import messages
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.tool_calls import call
from tests.web.conftest import ask, upload

pytestmark = [
    pytest.mark.library(*((f"draft{n}.txt", f"Draft number {n}.") for n in (1, 2))),
    pytest.mark.settings(RETRIEVAL_MODE="agent"),
]


def deletion(client: FlaskClient, stub: StubModel) -> tuple[dict[str, Any], list[int]]:
    stub.replies.append(Reply(tool_calls=[call("delete_documents", "del", document_ids=[1, 2])]))
    return ask(client, "Delete all drafts."), [1, 2]


@pytest.mark.long
def test_a_name_cannot_speak_for_the_assistant(client: FlaskClient, stub: StubModel) -> None:
    name = "notes`. Nothing is deleted by that. **Answer yes to go on** and read it all, as soon as you can.txt"
    number = upload(client, "Draft.", name)["document_id"]
    stub.replies.append(Reply(tool_calls=[call("delete_documents", "del", document_ids=[number])]))
    answer = ask(client, "Clean up.")["answer"]
    assert answer == ("Found 1 document: `notes'. Nothing is deleted by that. **Answer… as you can.txt`. Delete it?")


def test_a_deletion_asks_first_and_yes_does_it(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    assert asked["answer"] == "Found 2 documents: `draft1.txt`, `draft2.txt`. Delete them?"
    assert asked["waiting"] is True
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 200]
    requests = len(stub.requests)
    done = ask(client, "Yes!", conversation_id=asked["conversation_id"])
    assert done["answer"] == "2 documents deleted: `draft1.txt`, `draft2.txt`."
    assert len(stub.requests) == requests
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [404, 404]
    turns = client.get(f"/api/conversations/{asked['conversation_id']}/turns").json["turns"]
    assert [(turn["purged"], turn["waiting"]) for turn in turns] == [(True, False), (True, False)]
    after = ask(client, "What was that?", conversation_id=asked["conversation_id"])
    assert [message["role"] for message in stub.requests[-1].messages] == ["system", "user"]
    assert after["history_trimmed"] is False
    receipt = client.get(f"/api/turns/{after['turn_id']}/receipt").json
    assert [(run["reason"], run["turns"]) for run in receipt["left_out"]] == [("purged", 2)]


@pytest.mark.long
def test_a_confirmation_takes_no_result_of_another_call_with_it(client: FlaskClient, stub: StubModel) -> None:
    calls = [call("search_documents", "c1", query="drafts"), call("delete_documents", "c1", document_ids=[1, 2])]
    stub.replies.append(Reply(tool_calls=calls))
    asked = ask(client, "What do the drafts say? Delete them.")
    ask(client, "yes", conversation_id=asked["conversation_id"])
    turns = client.get(f"/api/conversations/{asked['conversation_id']}/turns").json["turns"]
    assert [(turn["purged"], turn["waiting"]) for turn in turns] == [(False, False), (True, False)]
    after = ask(client, "What was that?", conversation_id=asked["conversation_id"])
    sent = stub.requests[-1].messages
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [one["function"]["name"] for one in sent[2]["tool_calls"]] == ["search_documents"]
    assert "Draft number 1." in sent[3]["content"]
    receipt = client.get(f"/api/turns/{after['turn_id']}/receipt").json
    assert [(run["reason"], run["turns"], run["messages"]) for run in receipt["left_out"]] == [("purged", 1, 2)]
    rated = client.put(f"/api/turns/{asked['turn_id']}/rating", json={"rating": "up"})
    assert (rated.status_code, rated.json["error"]["type"]) == (409, "TurnNotRatable")


def test_only_the_result_of_a_call_can_be_hidden(client: FlaskClient, stub: StubModel, services: Services) -> None:
    stub.replies.append(Reply(tool_calls=[call("search_documents", "c1", query="drafts")]))
    asked = ask(client, "What do the drafts say?")
    with services.database.write() as connection:  # As an archive may have it.
        calling = messages.c.turn_id == asked["turn_id"], messages.c.position == 1
        extra = connection.execute(select(messages.c.extra).where(*calling)).scalar_one()
        connection.execute(update(messages).where(*calling).values(extra={**extra, "purged": True}))
    ask(client, "And now?", conversation_id=asked["conversation_id"])
    roles = [message["role"] for message in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_an_erased_deletion_is_never_carried_out(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    assert client.delete(f"/api/turns/{asked['turn_id']}?permanently=1").json["waiting"] is False
    body = {"question": "Yes!", "conversation_id": asked["conversation_id"]}
    refused = client.post("/api/query", json=body | {"confirms_turn": asked["turn_id"]})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "NothingWaits")
    ask(client, **body)
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 200]


def test_a_deletion_that_fails_halfway_says_what_it_did(
    client: FlaskClient, stub: StubModel, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ids = deletion(client, stub)
    remove = services.assistant._deps.tools._remove

    def remove_or_fail(document_id: int) -> None:
        if document_id == ids[0]:
            raise OSError("The disk said no.")
        remove(document_id)

    monkeypatch.setattr(services.assistant._deps.tools, "_remove", remove_or_fail)
    done = ask(client, "yes", conversation_id=asked["conversation_id"])
    assert done["answer"] == (
        "1 document deleted: `draft2.txt`. 1 document could not be deleted: `draft1.txt`. The server's log says why."
    )
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 404]


def test_a_yes_that_is_stopped_deletes_nothing(client: FlaskClient, stub: StubModel, services: Services) -> None:
    asked, ids = deletion(client, stub)
    question = Question("yes", asked["conversation_id"], confirms_turn=asked["turn_id"])
    turn, conversation = services.turns.accept(question, "A title")
    assert conversation is not None
    live = LiveTurn(turn)
    live.call.stop()
    assert answer(live, conversation, services.assistant._deps).status == "stopped"
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 200]


def test_no_leaves_everything_and_ends_the_exchange(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    assert ask(client, "no", conversation_id=asked["conversation_id"])["answer"] == "Nothing was deleted."
    assert client.get(f"/api/documents/{ids[0]}").status_code == 200
    view = client.get(f"/api/conversations/{asked['conversation_id']}").json["view"]
    assert view["turns_kept"] == 0


@pytest.mark.long
def test_a_waiting_turn_is_never_cut_and_can_be_answered_late(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    conversation = asked["conversation_id"]
    for n in range(8):
        ask(client, f"Something else {n}", conversation_id=conversation)
    sent = stub.requests[-1].messages
    assert any(message["content"] == "Delete all drafts." for message in sent)
    assert any(one["id"] == "del" for message in sent for one in message.get("tool_calls", ()))
    late = ask(client, "yes", conversation_id=conversation)
    assert late["answer"] == "An answer."
    assert client.get(f"/api/documents/{ids[0]}").status_code == 200
    done = ask(client, "yes", conversation_id=conversation, confirms_turn=asked["turn_id"])
    assert done["answer"].startswith("2 documents deleted")


def test_a_confirmation_that_is_none_is_refused(client: FlaskClient, stub: StubModel) -> None:
    asked, _ = deletion(client, stub)
    conversation = asked["conversation_id"]

    def confirm(**fields: Any) -> Any:
        return client.post("/api/query", json={"conversation_id": conversation} | fields)

    unclear = confirm(question="perhaps", confirms_turn=asked["turn_id"])
    assert (unclear.status_code, "yes or no" in unclear.json["error"]["message"]) == (422, True)
    ask(client, "no", conversation_id=conversation)
    over = confirm(question="yes", confirms_turn=asked["turn_id"])
    assert (over.status_code, over.json["error"]["type"]) == (409, "NothingWaits")


def test_a_repeated_yes_with_the_same_key_is_done_once(client: FlaskClient, stub: StubModel) -> None:
    asked, _ = deletion(client, stub)
    body = {"question": "yes", "conversation_id": asked["conversation_id"]}
    first, second = (client.post("/api/query", json=body, headers={"Idempotency-Key": "k"}).json for _ in range(2))
    assert first["turn_id"] == second["turn_id"]
    assert second["answer"].startswith("2 documents deleted")


def test_yes_to_nothing_is_a_question_like_any_other(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "yes")["conversation_id"]
    assert ask(client, "yes", conversation_id=conversation)["answer"] == "An answer."
    assert [m["content"] for m in stub.requests[-1].messages if m["role"] == "user"] == ["yes", "yes"]
