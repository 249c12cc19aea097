"""The main job on PostgreSQL."""

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


@pytest.mark.long
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
    for cells, total in (("doubtful", 0), ("not_found", 6)):
        assert client.get(f"{path}/rows?cells={cells}").json["total"] == total


@pytest.mark.long
def test_numbers_above_every_turn_are_no_errors_there(client: FlaskClient) -> None:
    turn = kept(client, "One").id
    assert client.get("/conversations/1?at=2147483647").status_code == 200
    assert client.post(f"/turns/{turn}/versions", data={"version": "99999999999"}).status_code == 422


@pytest.mark.long
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
