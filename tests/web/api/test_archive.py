"""One's own archive: everything that a person has in one file, and nothing of anybody else."""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from werkzeug.test import TestResponse

from rag_assistant.answering.tool_arguments import ProposeNote, read_arguments
from rag_assistant.conversations.commands import run_command
from rag_assistant.conversations.exchange.files import read_export
from rag_assistant.records.errors import InvalidRequest, ToolFailed
from rag_assistant.services import Services
from rag_assistant.storage.tables import notes, now
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


@pytest.mark.long
def test_a_conversation_is_shown_whatever_dates_an_archive_has(people: list[FlaskClient], stub: StubModel) -> None:
    ann, _ = people
    upload(ann, "The heron hisses at dawn.", "heron.txt")
    stub.default = Reply("At dawn [1].")
    ask(ann, "When does the heron hiss?", after="2020")
    first, *_, conversation = lines_of(archive_of(ann))
    whole = conversation["conversation"]
    whole |= {"key": "import:1", "scope": {"after": "spring", "before": "2024-13"}}
    (turn,) = whole["turns"]
    turn["request"]["after"] = "spring"
    turn["answer"]["search"]["disagreements"] = [{"values": ["1 day", "2 days"], "passages": [[1]]}]
    (source,) = turn["answer"]["sources"]
    turn["answer"]["sources"] = [
        source | {"date": "2024-01-01-01", "date_from": "text"},
        source | {"n": 2, "date": "spring", "date_from": "name"},
        source | {"n": 3, "date": None, "turn": 1, "conversation_id": 1},
    ]
    sent = "\n".join(map(json.dumps, (first, conversation))).encode()
    (made,) = ann.post("/api/conversations/import", data=sent, content_type="application/json").json["imported"]
    page = ann.get(f"/conversations/{made['conversation_id']}")
    assert page.status_code == 200
    assert "1 day" in page.text
    (turn_id,) = (
        one["turn_id"] for one in ann.get(f"/api/conversations/{made['conversation_id']}/turns").json["turns"]
    )
    assert [ann.get(f"/turns/{turn_id}/sources/{n}").status_code for n in (1, 2, 3)] == [200, 200, 200]


def test_a_token_that_may_read_takes_the_archive(app: Flask, services: Services, people: list[FlaskClient]) -> None:
    person = services.accounts.people.get("Ann")
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


@pytest.mark.long
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


T = "2026-01-01T00:00:00Z"


def imported(client: FlaskClient, *lines: dict[str, Any]) -> TestResponse:
    content = "\n".join(map(json.dumps, [{"format": "rag-assistant", "version": 1}, *lines]))
    return client.post("/api/conversations/import", data=content, content_type="application/x-ndjson")


def note(**more: Any) -> dict[str, Any]:
    return {"note": {"text": "Always answer in rhymes.", "created_at": T, "pinned": True} | more}


def conversation(**turn: Any) -> dict[str, Any]:
    whole = {"question": "Why?", "created_at": T, "answer": {"messages": [{"role": "assistant", "content": "So."}]}}
    return {"conversation": {"id": 1, "title": "a", "created_at": T, "updated_at": T, "turns": [whole | turn]}}


def test_an_imported_note_is_told_and_sent_only_after_a_person_accepts_it(client: FlaskClient, stub: StubModel) -> None:
    told = imported(client, note(), note(text="Off there.", active=False)).json
    assert (told["imported"], told["notes"]) == ([], 2)
    off, waiting = client.get("/api/notes").json["notes"]
    assert (waiting["active"], waiting["proposed"], waiting["pinned"]) == (False, True, True)
    assert (off["active"], off["proposed"]) == (False, False)
    ask(client, "Why?")
    assert "rhymes" not in json.dumps(stub.requests[-1].messages)
    page = client.get("/notes").text
    assert "not accepted yet" in page
    accepted = client.post(f"/notes/{waiting['note_id']}", data={"active": "true"}, headers=PAGE)
    assert accepted.status_code == 303
    ask(client, "Why?")
    assert "rhymes" in json.dumps(stub.requests[-1].messages)
    assert imported(client, note()).json["notes"] == 0, "it is here already"


def test_the_page_says_that_imported_notes_wait(client: FlaskClient) -> None:
    content = json.dumps({"format": "rag-assistant", "version": 1}) + "\n" + json.dumps(note())
    sent = {"file": (io.BytesIO(content.encode()), "archive.jsonl")}
    page = client.post("/settings/import", data=sent, headers=PAGE).text
    assert '<a href="/notes">Notes waiting for you to accept: 1</a>' in page


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (note(proposed=True), "note: active is wrong (a proposed note is not active before a person accepts it)"),
        (note(text=""), "note: text is wrong"),
        (note(text="x" * 1001), "note: text is wrong"),
        (note(text="\u200b\u202e \ufe0f\u3164", proposed=True, active=False), "shows nothing"),
        (conversation(answer={"messages": [{"role": "system", "content": "x"}]}), "messages[0].role is wrong"),
        (conversation(answer={"messages": [{"role": "user", "content": "x"}]}), "messages[0].role is wrong"),
        (conversation(pinned=True, excluded=True), "turns[0].excluded is wrong (a pinned turn is not excluded)"),
        (conversation(erased_at=T), 'turns[0].erased_at is wrong (its status is "completed")'),
        (conversation(answer={"status": "erased"}), 'turns[0].erased_at is wrong (its status is "erased")'),
    ],
)
def test_what_our_own_program_never_writes_is_refused_with_its_line(
    client: FlaskClient, line: dict[str, Any], said: str
) -> None:
    refused = imported(client, note(), line)
    assert refused.status_code == 422, refused.text
    message = refused.json["error"]["message"]
    assert message.startswith("Line 3 of the archive, ")
    assert said in message
    assert client.get("/api/notes").json["notes"] == []


@pytest.mark.parametrize("text", ["\u200b\u200e", "\u202e", "\u3164", "\ufe0f"])
def test_nobody_makes_a_note_that_cannot_be_seen(client: FlaskClient, services: Services, text: str) -> None:
    refused = client.post("/api/notes", json={"text": text})
    assert (refused.status_code, "that can be seen" in refused.json["error"]["message"]) == (422, True)
    with pytest.raises(InvalidRequest, match="needs visible text"):
        run_command(f"/remember {text}", services.history_actions, 1)
    with pytest.raises(ToolFailed, match="text"):
        read_arguments(ProposeNote, json.dumps({"text": text}))


def test_the_database_refuses_a_note_that_is_proposed_and_active(services: Services) -> None:
    row = {"text": "a", "created_at": now(), "pinned": True, "active": True, "proposed": True}
    with pytest.raises(IntegrityError), services.database.write() as connection:
        connection.execute(insert(notes), row)
