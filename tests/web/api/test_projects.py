"""Projects: what their conversations have in common, asked through every protocol, alone and shared."""

import html
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.stub_model import StubModel
from tests.web.conftest import PAGE, ask, upload

HARBOUR = {"name": "Harbour", "instructions": "Speak of boats.", "max_history_turns": 1, "on_overflow": "trim"}


def make(client: FlaskClient, **fields: Any) -> Any:
    response = client.post("/api/projects", json=HARBOUR | fields)
    assert response.status_code == 201, response.text
    return response.json


def system_of(stub: StubModel) -> str:
    """Return the system message of the last request."""
    message = stub.requests[-1].body["messages"][0]
    assert message["role"] == "system"
    return str(message["content"])


def test_a_project_is_made_read_changed_and_deleted(client: FlaskClient) -> None:
    upload(client, "Boats.", "boats.txt", tags="sea")
    made = make(client, tags=["sea"])
    assert made == {
        "project_id": 1, "name": "Harbour", "instructions": "Speak of boats.", "conversations": 0, "owner": None,
        "everyone": None, "shares": [], "mine": True, "writable": True, "max_history_turns": 1, "on_overflow": "trim",
        "scope": {"document_ids": [], "tags": ["sea"], "library_ids": [], "after": None, "before": None},
    }  # fmt: skip
    assert client.get("/api/projects").json == {"projects": [made]}
    changed = client.patch("/api/projects/1", json={"name": "Port", "max_history_turns": "default", "tags": None}).json
    assert (changed["name"], changed["instructions"], changed["scope"]) == ("Port", "Speak of boats.", None)
    assert "max_history_turns" not in changed
    assert client.get("/api/projects/1").json == changed
    assert client.delete("/api/projects/1").status_code == 204
    missing = client.get("/api/projects/1")
    assert (missing.status_code, missing.json["error"]["message"]) == (404, "There is no project 1.")


def test_two_projects_of_one_owner_have_two_names(client: FlaskClient) -> None:
    make(client)
    make(client, name="Port")
    make(client, name="harbour")
    refused = [
        client.post("/api/projects", json={"name": " Harbour "}),
        client.patch("/api/projects/2", json={"name": "Harbour"}),
        client.post("/projects", data={"name": "Harbour"}, headers=PAGE),
    ]
    said = 'There is already a project named "Harbour". Choose another name.'
    texts = [html.unescape(one.text).replace("\\", "") for one in refused]
    assert [(one.status_code, said in text) for one, text in zip(refused, texts, strict=True)] == [(409, True)] * 3
    assert client.patch("/api/projects/1", json={"name": "Harbour", "instructions": ""}).status_code == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": " "}, "name"),
        ({"name": "x", "instructions": "y" * 8001}, "it must be text of up to 8000 characters"),
        ({"name": "x", "document_ids": [7]}, "There is no document 7;"),
        ({"name": "x", "everyone": "read"}, "everyone"),
    ],
)
def test_a_project_that_cannot_be_is_refused_by_name(empty: FlaskClient, body: dict[str, Any], said: str) -> None:
    response = empty.post("/api/projects", json=body)
    assert response.status_code in (404, 422)
    assert said in response.json["error"]["message"]


def test_what_a_project_says_is_sent_stands_in_the_receipt_and_yields_to_what_is_nearer(
    client: FlaskClient, stub: StubModel
) -> None:
    upload(client, "The lamp burns rapeseed oil.", "lamp.txt")
    boats = upload(client, "The lamp of the boat burns tallow.", "boat.txt")["document_id"]
    project = make(client, document_ids=[boats])["project_id"]
    first = ask(client, "What does the lamp burn?", project_id=project)
    assert {source["document"] for source in first["sources"]} == {"boat.txt"}
    receipt = client.get(f"/api/turns/{first['turn_id']}/receipt").json
    assert receipt["messages"][0]["content"].endswith("\n\nSpeak of boats.")
    shown = client.get(f"/api/conversations/{first['conversation_id']}").json
    assert (shown["project_id"], shown["scope"], shown["view"]["max_history_turns"]) == (project, None, 1)
    for question in ("And the lamp?", "And now the lamp?"):
        last = ask(client, question, conversation_id=first["conversation_id"])
    assert (last["history_trimmed"], last["history"]["turns_kept"]) == (True, 1)
    path = f"/api/conversations/{first['conversation_id']}"
    assert client.patch(path, json={"max_history_turns": 9}).status_code == 200
    assert ask(client, "And?", conversation_id=first["conversation_id"])["history_trimmed"] is False
    assert "project_id" not in client.patch(path, json={"project_id": None}).json
    everything = ask(client, "What does the lamp burn?", conversation_id=first["conversation_id"])
    assert {source["document"] for source in everything["sources"]} == {"boat.txt", "lamp.txt"}
    assert "Speak of boats." not in system_of(stub)


def test_a_question_that_names_another_project_than_its_conversations_is_refused(client: FlaskClient) -> None:
    one, other = make(client)["project_id"], make(client, name="Other")["project_id"]
    conversation = client.post("/api/conversations", json={"project_id": one}).json["conversation_id"]
    refused = client.post("/api/query", json={"question": "Why?", "conversation_id": conversation, "project_id": other})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "NotInProject")
    assert ask(client, "Why?", conversation_id=conversation, project_id=one)["status"] == "completed"
    absent = client.post("/api/query", json={"question": "Why?", "project_id": 99})
    assert (absent.status_code, absent.json["error"]["type"]) == (404, "ProjectNotFound")


def test_a_shared_project_is_used_and_changed_as_its_owner_says(app: Flask, services: Services) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    secret = upload(ann, "The heron hisses at dawn.", "heron.txt")["document_id"]
    project = make(ann, document_ids=[secret])["project_id"]
    path = f"/api/projects/{project}"
    assert ben.get(path).status_code == 404
    shared = ann.put(f"{path}/shares", json={"person": "ben", "access": "read"}).json
    assert shared["shares"] == [{"person": "Ben", "access": "read"}]
    assert ben.get(path).json | {"shares": []} == ben.get(path).json
    answer = ask(ben, "When does the heron hiss?", project_id=project)
    assert answer["sources"] == [], "a project opens no document to anybody"
    assert ben.patch(path, json={"name": "Mine"}).status_code == 403
    ann.put(f"{path}/shares", json={"person": "ben", "access": "write"})
    assert ben.patch(path, json={"instructions": "Of birds.", "document_ids": [secret]}).status_code == 200
    assert ben.delete(path).status_code == 403
    assert [one["conversations"] for one in (ann.get(path).json, ben.get(path).json)] == [0, 1]
    assert ann.delete(path).status_code == 204
    assert "project_id" not in ben.get(f"/api/conversations/{answer['conversation_id']}").json


def test_a_project_asks_its_libraries_of_which_everybody_finds_what_they_may_read(
    app: Flask, services: Services, stub: StubModel
) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    library = ann.post("/api/libraries", json={"name": "Harbour"}).json["library_id"]
    upload(ann, "The lamp of the boat burns tallow.", "boat.txt", library_id=str(library))
    upload(ann, "The lamp burns rapeseed oil.", "lamp.txt")
    more = upload(ann, "The lamp of the keeper burns whale oil.", "keeper.txt")["document_id"]
    project = make(ann, library_ids=[library])["project_id"]
    path, question = f"/api/projects/{project}", "What does the lamp burn?"

    def found(client: FlaskClient, **fields: Any) -> set[str]:
        return {source["document"] for source in ask(client, question, **fields)["sources"]}

    assert found(ann, project_id=project) == {"boat.txt"}
    model = {"model": "rag-assistant/Harbour", "messages": [{"role": "user", "content": question}]}
    answer = ann.post("/v1/chat/completions", json=model).json["rag_assistant"]
    assert {source["document"] for source in answer["sources"]} == {"boat.txt"}
    ann.patch(path, json={"document_ids": [more]})
    assert found(ann, project_id=project) == {"boat.txt", "keeper.txt"}
    kept = ann.get("/api/conversations").json["conversations"][0]["conversation_id"]
    assert "keeper.txt and library Harbour" in ann.get(f"/conversations/{kept}").text
    assert f'name="library_ids" value="{library}" checked' in ann.get(f"/projects/{project}").text
    assert found(ann, library_ids=[library]) == {"boat.txt"}
    ann.put(f"{path}/shares", json={"person": "ben", "access": "write"})
    assert found(ben, project_id=project) == set(), "a project opens no library to anybody"
    ann.put(f"/api/libraries/{library}/shares", json={"person": "ben", "access": "read"})
    assert found(ben, project_id=project) == {"boat.txt"}
    refused = ben.patch(path, json={"document_ids": None, "library_ids": [99]})
    assert (refused.status_code, refused.json["error"]["message"]) == (404, "There is no library 99.")
    form = {"document_ids": "", "tags": "", "library_ids": ""}
    assert ann.post(f"/projects/{project}", data=form).status_code == 303
    assert found(ann, project_id=project) == {"boat.txt", "keeper.txt", "lamp.txt"}
