"""Tags of documents: given, changed and listed; and questions about the documents that have one."""

from flask.testing import FlaskClient

from tests.testkit.stub_model import StubModel
from tests.web.api.documents import FACT, as_file, found, path
from tests.web.conftest import ask, until, upload


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
        assert "text of 1 to 255 characters without slashes or invisible" in response.json["error"]["message"]
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
    assert response.json["error"]["message"] == 'No document has the tag "fish". Available: birds.'
