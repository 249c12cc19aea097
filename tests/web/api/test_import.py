"""Conversations of other products are taken in over the API."""

import io
import json
import zipfile
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.conversations.exchange import samples
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.samples import sample
from tests.testkit.stub_model import StubModel
from tests.web.conftest import PAGE, ask

URL = "/api/conversations/import"


def turns_of(client: FlaskClient, conversation: int) -> list[Any]:
    turns: list[Any] = client.get(f"/api/conversations/{conversation}/turns").json["turns"]
    return turns


def test_imported_conversations_are_there_as_they_were(client: FlaskClient, stub: StubModel) -> None:
    answer = client.post(URL, json=samples.chatgpt()).json
    assert answer == {
        "imported": [{"conversation_id": n, "title": "Birds", "turns": 2} for n in (1, 2, 3)],
        "skipped": [],
        "unreadable": 1,
        "mended": 0,
        "notes": 0,
    }
    assert stub.requests == [], "no model is asked"
    turns = turns_of(client, 1)
    assert [(turn["status"], turn["answer"], turn["model"]) for turn in turns] == [
        ("completed", "They hiss.", "gpt-5"),
        ("completed", "They are silent.", "gpt-5"),
    ]
    assert turns[0]["notes"] == ["Imported from ChatGPT."]
    assert turns[0]["created_at"].startswith("2024-05-18T02:40:02")
    shown = client.get("/api/conversations/1").json
    assert (shown["created_at"][:10], shown["pinned"], shown["turns"]) == ("2024-05-18", True, 2)
    assert client.get("/api/conversations/2").json["branched_from"] == {"conversation_id": 1, "turn": 2}
    assert b"Imported from ChatGPT." in client.get("/conversations/1").data
    assert "*Imported from ChatGPT.*" in client.get("/api/conversations/1/export").text


def test_a_file_is_read_in_a_confined_process_alone(
    client: FlaskClient, confined_readers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("rag_assistant.conversations.exchange.files.read_export", refused)
    assert len(client.post(URL, json=samples.chatgpt()).json["imported"]) == 3


def test_imported_conversations_are_found_by_their_words(client: FlaskClient) -> None:
    client.post(URL, data=json.dumps(samples.chatgpt()), content_type="application/json")
    found = client.get("/api/conversations?q=trumpet").json["conversations"]
    assert [(one["conversation_id"], one["turn"]) for one in found] == [(3, 2)]


def test_an_imported_conversation_goes_on(client: FlaskClient, stub: StubModel) -> None:
    client.post(URL, json=samples.open_webui())
    ask(client, "And why?", conversation_id=1)
    said = [message["content"] for message in stub.requests[-1].messages if message["role"] == "assistant"]
    assert said == ["They honk."]


def test_the_same_file_twice_doubles_nothing(client: FlaskClient) -> None:
    first = client.post(URL, json=samples.open_webui()).json
    client.delete("/api/conversations/2")
    second = client.post(URL, json=samples.open_webui()).json
    assert (second["imported"], second["skipped"]) == ([], first["imported"])


def test_a_copied_turn_of_a_branch_is_erased_with_its_original(client: FlaskClient) -> None:
    client.post(URL, json=samples.chatgpt())
    client.delete(f"/api/turns/{turns_of(client, 1)[0]['turn_id']}?permanently=1")
    assert [turns_of(client, n)[0]["status"] for n in (1, 2, 3)] == ["erased"] * 3


@pytest.mark.parametrize(
    "figures",
    [
        {"turns_dropped": 2},
        {"left_out": {"turn_limit": 3}},
        {"turns_kept": 99, "recalled_turns": [99], "missing": [{"turn": 99, "why": "elsewhere"}]},
    ],
)
def test_a_turn_with_figures_that_contradict_each_other_is_shown(client: FlaskClient, figures: dict[str, Any]) -> None:
    moment = "2026-01-01T00:00:00Z"
    history: dict[str, Any] = {
        "turns_kept": 0,
        "turns_dropped": 0,
        "messages_dropped": 0,
        "reason": None,
        "left_out": {},
    }
    answer = {
        "messages": [{"role": "assistant", "content": "So."}],
        "history": history | {"tokens": {"passages": 0}} | figures,
    }
    turn = {"question": "Why?", "created_at": moment, "answer": answer}
    one = {"id": 1, "title": "a", "created_at": moment, "updated_at": moment, "turns": [turn, turn]}
    lines = [{"format": "rag-assistant", "version": 1}, {"conversation": one}]
    sent = client.post(URL, data="\n".join(map(json.dumps, lines)), content_type="application/x-ndjson")
    assert len(sent.json["imported"]) == 1
    for address in ("/conversations/1", "/turns/2", "/api/turns/2", "/api/turns/2/stream", "/api/conversations/1"):
        assert (address, client.get(address, headers=PAGE).status_code) == (address, 200)


def test_a_form_with_the_zip_file_of_chatgpt_is_taken(client: FlaskClient) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations-000.json", json.dumps(samples.chatgpt()))
        archive.writestr("conversations-001.json", json.dumps(samples.open_webui()))
    packed.seek(0)
    answer = client.post(URL, data={"file": (packed, "export.zip")}).json
    assert [one["title"] for one in answer["imported"]] == ["Birds"] * 3 + ["Geese"] * 2


@pytest.mark.parametrize(
    ("kind", "body", "status", "said"),
    [
        ("application/json", b'[{"recipe": 1}]', 422, 'a list that begins with an object with the fields "recipe".'),
        ("application/json", b"{", 400, "The file is not JSON"),
        ("application/json", b"\xff", 400, "The file is not UTF-8 text."),
        ("application/zip", b"PK\x03\x04 and no more", 400, "The zip file cannot be read"),
        ("text/csv", b"a,b", 415, 'The content type is "text/csv"; it must be application/json'),
    ],
)
def test_other_files_are_refused_by_name(empty: FlaskClient, kind: str, body: bytes, status: int, said: str) -> None:
    refused = empty.post(URL, data=body, content_type=kind)
    assert (refused.status_code, said in refused.json["error"]["message"]) == (status, True), refused.text


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_file_is_refused(empty: FlaskClient, packing: int) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", packing) as archive:
        archive.writestr("conversations.json", json.dumps(samples.chatgpt()))
    whole, middle, end = packed.getvalue(), len(packed.getvalue()) // 3, packed.getvalue().rindex(b"PK\x05\x06")
    damaged = whole[:middle] + bytes(100) + whole[middle + 100 :]
    # Its directory would begin before the file does.
    misplaced = whole[: end + 16] + b"\xff" * 3 + whole[end + 19 :]
    for sent in (damaged, misplaced):
        refused = empty.post(URL, data=sent, content_type="application/zip")
        assert (refused.status_code, "The zip file cannot be read" in refused.text) == (400, True), refused.text


def test_a_form_without_a_file_is_refused(client: FlaskClient) -> None:
    refused = client.post(URL, data={"file": "text"}, content_type="multipart/form-data")
    assert refused.status_code == 422
    assert 'it must have one file, "file", and nothing else' in refused.json["error"]["message"]


pytestmark = pytest.mark.settings(MAX_UPLOAD_MB="1")


def test_a_file_that_is_too_large_is_refused(client: FlaskClient, services: Services) -> None:
    for size in (1_000_001, 1_200_000):
        refused = client.post(URL, data=b" " * size, content_type="application/json")
        assert refused.status_code == 413, refused.text
    assert services.exchange.ids() == []


def test_what_a_person_imports_is_theirs_and_another_persons_is_not_in_the_way(app: Flask, services: Services) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    mine = [one["conversation_id"] for one in ann.post(URL, json=samples.chatgpt()).json["imported"]]
    assert ben.get("/api/conversations").json["conversations"] == []
    assert ben.get(f"/api/conversations/{mine[0]}").status_code == 404
    theirs = ben.post(URL, json=samples.chatgpt()).json
    assert (len(theirs["imported"]), theirs["skipped"]) == (3, [])
    assert ann.post(URL, json=samples.chatgpt()).json["imported"] == []


@pytest.mark.parametrize("with_id", sample([True, False]))
@pytest.mark.parametrize("product", [samples.chatgpt, samples.open_webui])
def test_half_a_character_in_one_title_stops_nothing_and_is_told(
    client: FlaskClient, product: Any, with_id: bool
) -> None:
    content = product()
    if not with_id:
        content = [{name: value for name, value in one.items() if name != "conversation_id"} for one in content]
        content = [{name: value for name, value in one.items() if name != "id"} for one in content]
    content[0]["title"] = "Half \ud83d"
    answer = client.post(URL, data=json.dumps([*content, *samples.chatgpt()]), content_type="application/json")
    assert answer.status_code == 200, answer.text
    assert answer.json["mended"] == 1
    assert "Half \ufffd" in {one["title"] for one in answer.json["imported"]}
