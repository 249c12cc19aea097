"""Libraries: of one's own, shared to read or to write, with somebody or everybody, and taken back."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update

from rag_assistant.services import Services
from rag_assistant.storage.tables import documents
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.stub_model import StubModel
from tests.web.conftest import PAGE, ask, post, upload


@dataclass
class Two:
    """Ann, the first, and Ben, each signed in."""

    ann: FlaskClient
    ben: FlaskClient


@pytest.fixture
def two(app: Flask, services: Services) -> Iterator[Two]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name, "admin" if name == "Ann" else "member")
        yield Two(client_of(app, "Ann"), client_of(app, "Ben"))


def library_of(client: FlaskClient) -> int:
    number: int = client.get("/api/libraries").json["libraries"][0]["library_id"]
    return number


def test_each_person_has_a_library_and_alone_there_is_one(client: FlaskClient, app: Flask, services: Services) -> None:
    alone = client.get("/api/libraries").json["libraries"]
    assert [(one["name"], one["owner"], one["mine"]) for one in alone] == [("Documents", None, True)]
    refused = client.post("/api/libraries", json={"name": "More"})
    assert (refused.status_code, refused.json["error"]["type"]) == (403, "NotAllowed")
    assert "library_id" not in upload(client, "Geese.")
    with quick_passwords():
        add_person(services, "Ann")
        add_person(services, "Ben")
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    assert [(one["name"], one["owner"]) for one in ann.get("/api/libraries").json["libraries"]] == [
        ("Documents", "Ann")
    ]
    assert [one["name"] for one in ben.get("/api/libraries").json["libraries"]] == ["Documents of Ben"]


@pytest.mark.long
def test_file_search_of_a_response_asks_the_libraries_that_it_names(two: Two, stub: StubModel) -> None:
    upload(two.ann, "The heron hisses at dawn.", "heron.txt")
    question = {"model": "rag-assistant", "input": "When does the heron hiss?"}
    library = library_of(two.ann)
    more = two.ann.post("/api/libraries", json={"name": "More"}).json["library_id"]
    for ids, sources in (([str(library)], ["heron.txt"]), ([str(more)], []), ([], ["heron.txt"])):
        tool = {"type": "file_search", "vector_store_ids": ids}
        answer = two.ann.post("/v1/responses", json=question | {"tools": [tool]}).json
        assert [one["document"] for one in answer["rag_assistant"]["sources"]] == sources
        assert "tools" not in stub.requests[-1].body
    tool = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    refused = two.ann.post("/v1/responses", json=question | {"tools": [tool]})
    assert (refused.status_code, "vs_1" in refused.json["error"]["message"]) == (400, True)


@pytest.mark.long
@pytest.mark.parametrize("way", ["everyone", pytest.param("one person", marks=pytest.mark.long)])
def test_a_question_asks_what_is_shared_until_it_is_taken_back(two: Two, stub: StubModel, way: str) -> None:
    document = upload(two.ann, "The heron hisses at dawn.", "heron.txt")
    library = library_of(two.ann)

    def let(access: str | None) -> None:
        if way == "everyone":
            answer = two.ann.patch(f"/api/libraries/{library}", json={"everyone": access})
        else:
            answer = two.ann.put(f"/api/libraries/{library}/shares", json={"person": "ben", "access": access})
        assert answer.status_code == 200, answer.text

    def found() -> list[str]:
        return [source["document"] for source in ask(two.ben, "When does the heron hiss?")["sources"]]

    assert found() == []
    let("read")
    assert found() == ["heron.txt"]
    seen = two.ben.get("/api/libraries").json["libraries"][-1]
    assert (seen["owner"], seen["mine"], seen["writable"], seen["shares"]) == ("Ann", False, False, [])
    path = f"/api/documents/{document['document_id']}"
    assert two.ben.get(path).json["name"] == "heron.txt"
    assert "origin" not in two.ben.get(path).json
    assert two.ben.get(f"{path}/file", buffered=True).data == b"The heron hisses at dawn."
    for refused in (two.ben.delete(path), two.ben.patch(path, json={"tags": ["x"]}), two.ben.post(f"{path}/retry")):
        assert (refused.status_code, refused.json["error"]["type"]) == (403, "LibraryReadOnly")
    for refused in (
        two.ben.patch(f"/api/libraries/{library}", json={"name": "Mine"}),
        two.ben.put(f"/api/libraries/{library}/shares", json={"person": "Ben", "access": "write"}),
        two.ben.delete(f"/api/libraries/{library}"),
    ):
        assert (refused.status_code, refused.json["error"]["type"]) == (403, "NotLibraryOwner")
    let("write")
    assert two.ben.patch(path, json={"tags": ["x"]}).status_code == 200
    added = upload(two.ben, "The crane sleeps.", "crane.txt", library_id=str(library))
    assert two.ann.get(f"/api/documents/{added['document_id']}").json["library_id"] == library
    let(None)
    assert found() == []
    assert two.ben.get(path).status_code == 404
    assert two.ben.get(f"/api/documents/{added['document_id']}").status_code == 404
    assert len(two.ben.get("/api/libraries").json["libraries"]) == 1


def test_a_document_moves_between_the_libraries_that_one_may_write(two: Two) -> None:
    document = upload(two.ann, "The heron hisses.", "heron.txt")
    path = f"/api/documents/{document['document_id']}"
    made = two.ann.post("/api/libraries", json={"name": "Shared"})
    assert made.status_code == 201
    assert two.ann.patch(f"/api/libraries/{made.json['library_id']}", json={"everyone": "read"}).status_code == 200
    assert two.ben.get(path).status_code == 404
    assert (
        two.ann.patch(path, json={"library_id": made.json["library_id"]}).json["library_id"] == made.json["library_id"]
    )
    assert two.ben.get(path).status_code == 200
    again = upload(two.ann, "The heron hisses.", "again.txt")
    assert again["document_id"] != document["document_id"]
    same = two.ann.patch(f"/api/documents/{again['document_id']}", json={"library_id": made.json["library_id"]})
    assert (same.status_code, same.json["error"]["type"]) == (409, "SameContent")
    foreign = two.ann.patch(path, json={"library_id": library_of(two.ben)})
    assert (foreign.status_code, foreign.json["error"]["type"]) == (404, "LibraryNotFound")


def test_an_empty_library_can_be_deleted_but_not_the_last(two: Two) -> None:
    own = library_of(two.ben)
    assert two.ben.delete(f"/api/libraries/{own}").status_code == 409
    made = two.ben.post("/api/libraries", json={"name": "More"}).json["library_id"]
    upload(two.ben, "Geese.", library_id=str(made))
    assert two.ben.delete(f"/api/libraries/{made}").status_code == 409
    assert two.ben.delete(f"/api/libraries/{own}").status_code == 204
    assert two.ben.delete("/api/libraries/999999").status_code == 404


def test_what_cannot_be_shared_is_said(two: Two) -> None:
    library = f"/api/libraries/{library_of(two.ann)}"
    for method, path, body, message in (
        ("POST", "/api/libraries", {"name": " "}, "name is"),
        ("PUT", f"{library}/shares", {"person": "Ben", "access": "own"}, 'access is "own"; it must be read, write, or'),
        ("PUT", f"{library}/shares", {"person": "Nobody", "access": "read"}, 'There is no account "Nobody".'),
    ):
        refused = two.ann.open(path, method=method, json=body)
        assert refused.status_code in (404, 422)
        assert message in refused.json["error"]["message"]


@pytest.mark.long
def test_the_page_does_the_same_with_plain_forms(two: Two) -> None:
    upload(two.ann, "The heron hisses.", "heron.txt")
    library = library_of(two.ann)
    assert post(two.ann, f"/libraries/{library}", name="Birds")[0] == 303
    assert post(two.ann, f"/libraries/{library}/shares", person="Nobody", access="read")[0] == 404
    assert post(two.ann, f"/libraries/{library}/shares", person="Ben", access="read")[0] == 303
    page = two.ben.get("/libraries", headers=PAGE).text
    assert "<bdi>Birds</bdi>" in page
    assert "1 document · owned by Ann · you can read" in page
    assert post(two.ben, f"/libraries/{library}", everyone="write")[0] == 403
    shown = two.ben.get("/documents", headers=PAGE).text
    assert "heron.txt" in shown
    assert post(two.ann, f"/libraries/{library}/shares", person="Ben", access="")[0] == 303
    assert "Birds" not in two.ben.get("/libraries", headers=PAGE).text
    assert post(two.ben, "/libraries", name="More")[0] == 303
    page = two.ben.get("/documents", headers=PAGE).text
    assert '<select name="library_id">' in page
    audit = two.ann.get("/people", headers=PAGE).text
    assert "shared a library with Ben (read)" in audit


def test_readers_of_a_library_do_not_see_the_address_of_the_embedding_model(two: Two, services: Services) -> None:
    document = upload(two.ann, "The heron hisses at dawn.", "heron.txt")["document_id"]
    two.ann.patch(f"/api/libraries/{library_of(two.ann)}", json={"everyone": "write"})
    reason = 'The embedding model "e" at http://10.9.8.7/v1 refused the request (401): account acct_SECRET77.'
    with services.database.write() as connection:
        failed = update(documents).where(documents.c.id == document)
        connection.execute(failed.values(state="failed", reason=reason))
    for path in (f"/api/documents/{document}", "/api/documents", f"/documents/{document}", "/documents/report"):
        assert "10.9.8.7" not in two.ben.get(path, headers=PAGE).text, path
    assert two.ann.get(f"/api/documents/{document}").json["reason"] == reason
    assert two.ben.get(f"/api/documents/{document}").json["reason"]
