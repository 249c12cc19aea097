"""The main job on PostgreSQL."""

import io

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import kept
from tests.web.conftest import ask, until, upload


@pytest.fixture
def environment(environment: dict[str, str], postgres_database: str) -> dict[str, str]:
    return environment | {"DATABASE_URL": postgres_database}


def test_a_document_is_cited_the_window_moves_and_deleted_is_gone(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, "The lighthouse keeper feeds seventeen geese.")
    assert document["state"] == "ready"
    first = ask(client, "How many geese does the keeper feed?")
    assert [source["document_id"] for source in first["sources"]] == [document["document_id"]]
    for number in range(2, 6):
        kept(client, f"Question {number}", first["conversation_id"])
    assert not ask(client, "Question 6", conversation_id=first["conversation_id"])["history_trimmed"]
    seventh = ask(client, "Question 7", conversation_id=first["conversation_id"])
    assert seventh["history_trimmed"]
    assert seventh["history"]["turns_kept"] == 5
    assert [message["role"] for message in stub.requests[-1].messages] == [
        "system", "system", *["user", "assistant"] * 5, "user",
    ]  # fmt: skip

    assert client.delete(f"/api/documents/{document['document_id']}").status_code == 204
    assert client.get("/api/search?q=geese").json["passages"] == []
    page = client.get(f"/api/conversations/{first['conversation_id']}/turns?limit=100").json
    assert len(page["turns"]) == 7
    assert client.get("/readyz").status_code == 200


def test_a_table_says_there_why_it_stopped_and_goes_on(client: FlaskClient, stub: StubModel) -> None:
    for number in range(6):
        upload(client, f"House {number} has a door.", f"{number}.txt")
    stub.default = Reply(status=400)
    columns = [{"question": "How many doors has the house?", "type": "number"}]
    path = f"/api/grids/{client.post('/api/grids', json={'name': 'Houses', 'columns': columns}).json['grid_id']}"
    for reply, state in ((stub.default, "failed"), (Reply("not found"), "done")):
        stub.default = reply
        client.post(f"{path}/start", json={})
        until(lambda state=state: client.get(path).json["cells"].get(state, 0) >= 5)
    until(lambda: client.get(path).json["cells"] == {"done": 6})


@pytest.mark.long  # As in tests/storage/documents.
def test_a_newer_version_takes_the_place_of_the_older_one(client: FlaskClient, services: Services) -> None:
    old = upload(client, "The keeper feeds geese.", "a.txt")
    sent = {"file": (io.BytesIO(b"The keeper feeds swans."), "b.txt"), "replaces": old["document_id"], "tags": "birds"}
    newer = client.post("/api/documents", data=sent).json
    until(lambda: client.get(f"/api/documents/{newer['document_id']}").json["document_id"] != newer["document_id"], 10)
    passages = client.get("/api/search?q=keeper").json["passages"]
    assert [(one["document_id"], one["text"]) for one in passages] == [(old["document_id"], "The keeper feeds swans.")]
    assert ask(client, "Who feeds swans?", document_ids=[old["document_id"]])["sources"]
    assert list(services.doctor().examine()) == []


def test_numbers_above_every_turn_are_no_errors_there(client: FlaskClient) -> None:
    turn = kept(client, "One").id
    assert client.get("/conversations/1?at=2147483647").status_code == 200
    assert client.post(f"/turns/{turn}/versions", data={"version": "99999999999"}).status_code == 422


@pytest.mark.long  # As in tests/storage/conversations.
def test_versions_branches_and_the_state_tag_are_the_same_there(client: FlaskClient) -> None:
    turns = [ask(client, "One")["turn_id"]]
    turns.append(ask(client, "Two geese", conversation_id=1)["turn_id"])
    before = client.head("/api/conversations/1").headers["ETag"]
    assert client.post(f"/api/turns/{turns[1]}/regenerate").status_code == 202
    until(lambda: client.get(f"/api/turns/{turns[1]}").json["status"] == "completed")
    assert client.head("/api/conversations/1").headers["ETag"] != before
    assert client.post(f"/api/turns/{turns[1]}/versions/1/choose").json["version"] == 1
    third = ask(client, "Three", conversation_id=1)
    branch = ask(client, "Three, better", edits_turn=third["turn_id"])
    assert (branch["conversation_id"], branch["turn"]) == (2, 3)
    copied = client.get("/api/conversations/2/turns").json["turns"]
    assert [(turn["question"], turn["versions"]) for turn in copied[:2]] == [("One", 1), ("Two geese", 2)]
    found = client.get("/api/conversations", query_string={"q": "geese"}).json["conversations"]
    assert {one["conversation_id"] for one in found} == {1, 2}
    assert "1 / 2" in client.get("/conversations/1").text


def test_a_library_that_pgvector_searches_is_ready_and_sound(client: FlaskClient, services: Services) -> None:
    document = upload(client, "The lighthouse keeper feeds seventeen geese.")
    assert client.get("/api/search?q=geese").json["passages"]
    until(lambda: client.get("/readyz").json["parts"]["pgvector"] == "ready")
    assert ask(client, "How many geese?", document_ids=[document["document_id"]])["sources"]
    assert "Search" in client.get("/settings").text
    assert list(services.doctor().examine()) == []


class TestWithoutPgvector:
    @pytest.fixture
    def environment(self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        # An application looks for it as soon as it starts.
        monkeypatch.setattr("rag_assistant.storage.documents.vector_table.OFFERED", "SELECT 1 WHERE false")
        return environment

    def test_exact_search_answers_and_it_is_said(self, client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
        upload(client, "The lighthouse keeper feeds seventeen geese.")
        assert client.get("/api/search?q=geese").json["passages"]
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json["parts"]["pgvector"]) == (200, "missing")
        sentence = "PostgreSQL has no extension &#34;vector&#34; (pgvector)"
        assert sentence in client.get("/settings").text

        def is_logged() -> bool:
            logged = [record.message for when in ("setup", "call") for record in caplog.get_records(when)]
            return any(one.startswith("PostgreSQL has no extension") for one in logged)

        until(is_logged)
