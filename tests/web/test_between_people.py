"""What changes between two people while one of them asks, and what one could find out about the other."""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.answering import assistant
from rag_assistant.services import Services
from rag_assistant.web.api import turns
from tests.testkit.people import ACTOR, add_person, client_of, quick_passwords, token_client
from tests.testkit.stub_model import Reply, Seen, StubModel
from tests.web.api.test_archive import archive_of, lines_of
from tests.web.conftest import ask, events_of, upload

pytestmark = pytest.mark.settings(RETRIEVAL_MODE="agent")


@pytest.fixture
def people(app: Flask, services: Services) -> Iterator[list[FlaskClient]]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        yield [client_of(app, name) for name in ("Ann", "Ben")]


def library_of(client: FlaskClient) -> int:
    found: int = client.get("/api/libraries").json["libraries"][0]["library_id"]
    return found


def read(document: int, call_id: str) -> Reply:
    return Reply(tool_calls=[{"id": call_id, "name": "read_document", "arguments": {"document_id": document}}])


def test_the_same_key_of_two_people_gives_each_their_own_turn(people: list[FlaskClient]) -> None:
    turns = [
        client.post("/api/query", json={"question": "Mine?"}, headers={"Idempotency-Key": "one key"}).json["turn_id"]
        for client in (*people, *people)
    ]
    assert turns[0] == turns[2] != turns[1] == turns[3]


@pytest.mark.parametrize(
    "how", ["taken back", *(pytest.param(how, marks=pytest.mark.long) for how in ("moved away", "deleted"))]
)
def test_what_is_no_longer_shared_is_not_there_for_the_rest_of_a_running_question(
    people: list[FlaskClient], stub: StubModel, how: str
) -> None:
    ann, ben = people
    document, shared = upload(ann, "The heron hisses at dawn.", "heron.txt")["document_id"], library_of(ann)
    assert ann.patch(f"/api/libraries/{shared}", json={"everyone": "read"}).status_code == 200
    private = ann.post("/api/libraries", json={"name": "Private"}).json["library_id"]

    def take_away(seen: Seen) -> Reply:
        if any(one["role"] == "tool" for one in seen.body["messages"]):
            stub.next_reply = ordinary
            if how == "taken back":
                assert ann.patch(f"/api/libraries/{shared}", json={"everyone": None}).status_code == 200
            elif how == "moved away":
                assert ann.patch(f"/api/documents/{document}", json={"library_id": private}).status_code == 200
            else:
                assert ann.delete(f"/api/documents/{document}").status_code == 204
            return read(document, "b")
        return read(document, "a")

    ordinary = stub.next_reply
    stub.next_reply = take_away
    asked = ask(ben, "When does the heron hiss?")
    before, after = [step["result"] for step in asked["steps"]]
    assert ("hisses at dawn" in before, "hisses at dawn" in after) == (True, False)
    assert f"There is no document {document}" in after
    assert ask(ben, "And now?", conversation_id=asked["conversation_id"])["status"] == "completed"


def test_a_stream_ends_soon_after_its_token(
    app: Flask, services: Services, people: list[FlaskClient], stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "WATCH_INTERVAL_SECONDS", 0.05)
    assert assistant.WATCH_INTERVAL_SECONDS <= 4, "it is looked at so often where it is served"
    ben = services.accounts.people.get("Ben")
    program = token_client(app, services, ben, "ask", "read")
    stub.default = Reply("word " * 400, seconds_between=0.02)
    response = program.post("/api/query/stream", json={"question": "Slow?"})
    body = b""
    for piece in response.response:
        if not body:
            services.accounts.revoke_token(ben, services.accounts.credentials.tokens_of(ben.id)[0].id, ACTOR)
        body += piece if isinstance(piece, bytes) else piece.encode()
    response.close()
    name, _, data = events_of(body)[-1]
    assert (name, data["error"]["type"]) == ("error", "NotSignedIn")
    assert program.get("/api/conversations").status_code == 401


def test_the_same_file_of_two_people_is_two_documents_of_which_neither_knows(people: list[FlaskClient]) -> None:
    ann, ben = people
    first, second = (upload(one, "The heron hisses.", "heron.txt") for one in (ann, ben))
    assert first["document_id"] != second["document_id"]
    for one in (ann, ben):
        assert one.get("/api/documents").json["documents"][0]["name"] == "heron.txt"
        assert len(one.get("/api/documents").json["documents"]) == 1
    assert ann.delete(f"/api/documents/{first['document_id']}").status_code == 204
    assert ben.get(f"/api/documents/{second['document_id']}/file", buffered=True).data == b"The heron hisses."


@pytest.mark.long
def test_an_archive_that_names_anothers_document_tells_nothing_about_it(
    people: list[FlaskClient], stub: StubModel
) -> None:
    ann, ben = people
    document = upload(ann, "The heron hisses at dawn.", "heron.txt")["document_id"]
    stub.replies.extend([read(document, "a"), Reply("At dawn [1].")])
    ask(ann, "When does the heron hiss?")
    lines = lines_of(archive_of(ann))
    answers = []
    for sha256 in (next(one["document"]["sha256"] for one in lines if "document" in one), "0" * 64):
        forged = [_with_sha256(one, sha256) for one in lines]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("archive.jsonl", "".join(json.dumps(one) + "\n" for one in forged))
        sent = ben.post("/api/conversations/import", data=packed.getvalue(), content_type="application/zip")
        (made,) = sent.json["imported"]
        turn = ben.get(f"/api/conversations/{made['conversation_id']}/turns").json["turns"][0]
        answers.append([(one["document_id"], one["text"]) for one in turn["sources"]])
        assert ben.post(f"/api/conversations/{made['conversation_id']}/purge").status_code in (204, 404, 409)
        ben.delete(f"/api/conversations/{made['conversation_id']}")
        ben.post(f"/api/conversations/{made['conversation_id']}/purge")
    assert answers[0] == answers[1]
    assert document not in [number for number, _ in answers[0]]


def _with_sha256(line: dict[str, Any], sha256: str) -> dict[str, Any]:
    return {"document": line["document"] | {"sha256": sha256}} if "document" in line else line
