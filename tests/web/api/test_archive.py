"""One's own archive: everything that a person has in one file, and nothing of anybody else."""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.conversations.exchange.files import read_export
from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of, quick_passwords, token_client
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, upload


@pytest.fixture
def people(app: Flask, services: Services) -> Iterator[list[FlaskClient]]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        yield [client_of(app, name) for name in ("Ann", "Ben")]


def archive_of(client: FlaskClient, query: str = "") -> bytes:
    response = client.get(f"/api/export{query}", buffered=True)
    assert (response.status_code, response.mimetype) == (200, "application/zip")
    assert response.headers["Content-Disposition"] == "attachment; filename=rag-assistant.zip"
    return response.data


def lines_of(archive: bytes) -> list[dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        return [json.loads(line) for line in packed.read("archive.jsonl").splitlines()]


def conversations_of(archive: bytes) -> list[Any]:
    """Return the conversations of an archive without what is new wherever it is read."""
    found = [line["conversation"] for line in lines_of(archive) if "conversation" in line]
    return [one | {"id": 0} for one in found]


def names_of(archive: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        return packed.namelist()


def test_an_archive_has_ones_own_and_is_read_back_identically(people: list[FlaskClient], stub: StubModel) -> None:
    ann, ben = people
    upload(ann, "The heron hisses at dawn.", "heron.txt", tags="birds")
    upload(ben, "Geese are zebracanary.", "geese.txt")
    stub.default = Reply("At dawn [1].")
    first = ask(ann, "When does the heron hiss?")
    ask(ann, "And why?", conversation_id=first["conversation_id"])
    ann.put(f"/api/turns/{first['turn_id']}/rating", json={"rating": "up"})
    ask(ben, "Where is the zebracanary?")
    archive = archive_of(ann)
    assert "zebracanary" not in json.dumps(lines_of(archive))
    assert [line["document"]["name"] for line in lines_of(archive) if "document" in line] == ["heron.txt"]
    before = conversations_of(archive)
    assert len(before) == 1
    sent = {"file": (io.BytesIO(archive), "rag-assistant.zip")}
    assert ann.post("/api/conversations/import", data=sent).json["skipped"][0]["turns"] == 2
    ann.delete(f"/api/conversations/{first['conversation_id']}")
    ann.post(f"/api/conversations/{first['conversation_id']}/purge")
    assert conversations_of(archive_of(ann)) == []
    again = ann.post("/api/conversations/import", data=archive, content_type="application/zip").json
    assert [one["turns"] for one in again["imported"]] == [2]
    assert conversations_of(archive_of(ann)) == before
    # For another person it is another conversation, whose sources they may not open.
    assert ben.post("/api/conversations/import", data=archive, content_type="application/zip").status_code == 200
    assert len(conversations_of(archive_of(ben))) == 2
    assert len(conversations_of(archive_of(ann))) == 1


def test_files_come_along_if_they_are_asked_for(people: list[FlaskClient]) -> None:
    ann, ben = people
    upload(ann, "The heron hisses.", "heron.txt")
    upload(ben, "Geese.", "geese.txt")
    assert names_of(archive_of(ann)) == ["archive.jsonl"]
    assert len(names_of(archive_of(ann, "?files=1"))) == 2
    assert ann.get("/api/export?files=all").status_code == 422
    assert ann.get("/api/export?documents=1").status_code == 422


def test_a_token_that_may_read_takes_the_archive(app: Flask, services: Services, people: list[FlaskClient]) -> None:
    person = services.accounts.people.named("Ann")
    assert archive_of(token_client(app, services, person, "read"))
    assert token_client(app, services, person, "documents").get("/api/export").status_code == 403
    assert app.test_client().get("/api/export").status_code == 401


def test_alone_the_archive_is_everything_and_leaves_no_file(client: FlaskClient, services: Services) -> None:
    ask(client)
    before = set(services.data_dir.iterdir())
    assert len(conversations_of(archive_of(client))) == 1
    assert set(services.data_dir.iterdir()) == before


def test_the_page_exports_and_imports(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "When do <b>geese</b> hiss?")["conversation_id"]
    page = client.get("/settings", headers=PAGE).text
    assert 'href="/api/export"' in page
    archive = archive_of(client)
    sent = {"file": (io.BytesIO(archive), "rag-assistant.zip")}
    assert "0 imported. 1 skipped: already here." in client.post("/settings/import", data=sent, headers=PAGE).text
    client.delete(f"/api/conversations/{conversation}")
    client.post(f"/api/conversations/{conversation}/purge")
    sent = {"file": (io.BytesIO(archive), "rag-assistant.zip")}
    done = client.post("/settings/import", data=sent, headers=PAGE)
    assert done.status_code == 200
    assert "1 imported." in done.text
    assert "When do &lt;b&gt;geese&lt;/b&gt; hiss?</a>" in done.text


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (b"PK\x03\x04nonsense", 400, "zip"),
        (b"", 400, ""),
        (b"{}", 422, ""),
        (b'"\\ud800"', 422, "The file holds"),
        (b'[{"\\ud800": 1}]', 422, "an object with the fields"),
    ],
)
def test_the_page_says_what_is_wrong_with_a_file(empty: FlaskClient, content: bytes, status: int, said: str) -> None:
    answer = empty.post("/settings/import", data={"file": (io.BytesIO(content), "x.zip")}, headers=PAGE)
    assert answer.status_code == status
    assert 'class="error" role="alert"' in answer.text
    assert said in answer.text


def test_whatever_became_of_a_conversation_its_export_is_taken(client: FlaskClient, services: Services) -> None:
    first = ask(client, "Why?")
    conversation, turn = first["conversation_id"], first["turn_id"]
    services.assistant.regenerate(turn)
    services.assistant.wait(turn)
    assert client.put(f"/api/turns/{turn}/rating", json={"rating": "down"}).status_code == 200
    asked = [ask(client, f"And {n}?", conversation_id=conversation)["turn_id"] for n in range(7)]

    def turns_read_back() -> list[int]:
        return [len(one.turns) for one in read_export(io.BytesIO(archive_of(client)), 10_000_000).conversations]

    assert turns_read_back() == [8]
    for command in ("/compact", "/undo", "/compact", "/reset", "/undo"):
        assert client.post(f"/api/conversations/{conversation}/commands", json={"command": command}).status_code == 200
        assert turns_read_back() == [8]
    for one in asked[:2]:
        assert client.patch(f"/api/turns/{one}", json={"pinned": True}).status_code == 200
        assert turns_read_back() == [8]
    ask(client, "Edited?", conversation_id=conversation, edits_turn=asked[3])
    for one in (turn, *asked):
        services.eraser.erase(one)
        assert turns_read_back() == [8, 5]
