"""What other conversations said about a question comes as a passage, where that is switched on."""

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.test_erasing import (
    SECRET,
    compressed_with_secret,
    erase,
    files_with,
    receipt,
    regenerate,
    tables_with_secret,
)
from tests.web.conftest import ask, both_engines, upload

QUESTION = "Which harbour does the ferry of Mimi leave from?"


pytestmark = pytest.mark.settings(SEARCH_CONVERSATIONS="mine")


def told(
    client: FlaskClient, stub: StubModel, answer: str = "Noted: the ferry of Mimi leaves from Bremerhaven."
) -> Any:
    """Let a first conversation say something, behind a turn about something else."""
    first = ask(client, "Good morning.")
    stub.replies.append(Reply(answer))
    return ask(client, "Remember the ferry of Mimi.", conversation_id=first["conversation_id"])


def past(turn: Any) -> list[tuple[int, int]]:
    return [(one["conversation_id"], one["turn"]) for one in turn["sources"] if one["turn"] is not None]


@both_engines
def test_a_turn_of_another_conversation_comes_as_a_passage_and_is_told(client: FlaskClient, stub: StubModel) -> None:
    turn = told(client, stub)
    place = turn["conversation_id"], 2
    stub.replies.append(Reply("From Bremerhaven [1]."))
    answer = ask(client, QUESTION)
    sent = stub.requests[-1].messages[-1]["content"]
    date = turn["created_at"][:10]
    assert (
        f"[1] (earlier conversation {place[0]}, turn 2, {date})\nUser: Remember the ferry of Mimi.\nAssistant: No"
        in sent
    )
    assert "the document counts" in sent
    (source,) = answer["sources"]
    assert (source["document_id"], source["document"], source["date"]) == (None, "Earlier conversation, turn 2", date)
    assert (past(answer), source["cited"], answer["support"]) == ([place], True, "cited")
    counted = [{"conversation_id": place[0], "turn": 2}]
    assert answer["history"]["past_turns"] == receipt(client, answer["turn_id"])["past_turns"] == counted
    assert answer["history"]["tokens"]["passages"] > 0
    page = client.get(f"/api/conversations/{answer['conversation_id']}/turns").json["turns"]
    assert page[0]["corrections"] == []


def test_documents_come_first_and_what_was_said_behind_them(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The ferry of Mimi leaves from the harbour of Emden.")
    told(client, stub)
    answer = ask(client, QUESTION)
    assert [one["document_id"] is None for one in answer["sources"]] == [False, True]
    assert answer["search"]["found"] == 1


@pytest.mark.long
def test_where_the_documents_have_nothing_the_model_is_told_so_beside_it(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "Photosynthesis turns light into sugar.")
    told(client, stub)
    assert len(ask(client, QUESTION)["sources"]) == 1
    sent = stub.requests[-1].messages[-1]["content"]
    assert "<passages>\nNothing in the documents was found for this question.\n\n[1] (earlier conversation" in sent


@both_engines
def test_nothing_comes_of_this_conversation_the_trash_hidden_turns_or_branches(
    client: FlaskClient, stub: StubModel
) -> None:
    turn = told(client, stub)
    here = {"conversation_id": turn["conversation_id"]}
    assert past(ask(client, QUESTION, **here)) == []
    erase(client, ask(client, "Say nothing.", **here)["turn_id"])
    branch = ask(client, "In other words.", edits_turn=ask(client, "Something else?", **here)["turn_id"])
    assert branch["conversation_id"] != turn["conversation_id"]
    assert past(ask(client, QUESTION, conversation_id=branch["conversation_id"])) == []
    found = past(ask(client, QUESTION, search_conversations="mine"))
    assert [number for _, number in found].count(2) == 1, "a branch has a copy of it"
    client.patch(f"/api/turns/{turn['turn_id']}", json={"excluded": True})
    client.delete(f"/api/conversations/{branch['conversation_id']}")
    other = ask(client, "Which harbour does the ferry leave from, of Mimi?")
    assert (here["conversation_id"], 2) not in past(other)
    client.patch(f"/api/turns/{turn['turn_id']}", json={"excluded": False})
    assert (here["conversation_id"], 2) in past(ask(client, QUESTION))
    client.delete(f"/api/conversations/{here['conversation_id']}")
    assert here["conversation_id"] not in dict(past(ask(client, QUESTION)))


def test_the_question_beats_the_conversation_and_that_the_settings(client: FlaskClient, stub: StubModel) -> None:
    told(client, stub)
    asked = ask(client, QUESTION, search_conversations="off")
    assert past(asked) == []
    here = f"/api/conversations/{asked['conversation_id']}"
    regenerate(client, asked["turn_id"])
    assert past(client.get(f"/api/turns/{asked['turn_id']}").json) == [], "it is asked as it was"
    assert client.patch(here, json={"search_conversations": "off"}).json["search_conversations"] == "off"
    assert past(ask(client, QUESTION, conversation_id=asked["conversation_id"])) == []
    assert past(ask(client, QUESTION, conversation_id=asked["conversation_id"], search_conversations="mine"))
    assert "search_conversations" not in client.patch(here, json={"search_conversations": "default"}).json
    refused = client.post("/api/query", json={"question": "x", "search_conversations": "all"})
    assert "one of off, project, mine" in refused.json["error"]["message"]


@pytest.mark.long
def test_in_a_project_only_its_own_conversations_are_searched(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    turn = told(client, stub)
    project = services.projects.add("Ferries", own={"search_conversations": "project"})
    here = services.conversations.create("Here", project.id)
    assert past(ask(client, QUESTION, conversation_id=here.id)) == []
    services.conversations.change(turn["conversation_id"], project_id=project.id)
    assert past(ask(client, "Where does the ferry of Mimi leave from?", conversation_id=here.id))


@both_engines
def test_nobody_finds_what_another_person_said(
    app: Flask, client: FlaskClient, services: Services, stub: StubModel
) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    told(ann, stub)
    assert past(ask(ben, QUESTION)) == []
    assert past(ask(ann, QUESTION))


@both_engines
@pytest.mark.parametrize("how", ["turn", "conversation"])
def test_what_is_erased_is_gone_from_receipts_and_sources_of_other_conversations(
    client: FlaskClient, stub: StubModel, services: Services, how: str
) -> None:
    turn = told(client, stub, f"Noted: the ferry of Mimi leaves from {SECRET}.")
    first = ask(client, QUESTION)
    regenerate(client, first["turn_id"])
    second = ask(client, "Why?", conversation_id=first["conversation_id"], search_conversations="off")
    ask(client, "And?", edits_turn=second["turn_id"], search_conversations="off")  # A branch with a copy of the first.
    list(client.get(f"/api/conversations/{first['conversation_id']}/receipts").response)  # Its chain is kept from here.
    compressed = compressed_with_secret(services)
    assert len(compressed) >= 6
    if how == "turn":
        erase(client, turn["turn_id"])
    else:
        assert client.post(f"/api/conversations/{turn['conversation_id']}/purge").status_code in (200, 204)
    assert tables_with_secret(services) == set()
    assert files_with(services, SECRET.encode(), *compressed) == []
    (source,) = client.get(f"/api/turns/{first['turn_id']}").json["sources"]
    assert source["text"].startswith("[Erased: ")
    kept = receipt(client, first["turn_id"])
    assert "turn 2," in json.dumps(kept["messages"])
    assert kept["erased_elsewhere"] is True
    page = client.get(f"/turns/{first['turn_id']}/receipt").text
    assert "This is exactly what was sent" not in page


@pytest.mark.long
def test_an_answer_that_was_found_a_turn_which_is_erased_meanwhile_keeps_nothing_of_it(
    client: FlaskClient, stub: StubModel, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = told(client, stub, f"Noted: the ferry of Mimi leaves from {SECRET}.")
    keep = services.turns.keep_receipt

    def erased_before(*arguments: Any) -> None:
        monkeypatch.undo()
        erase(client, turn["turn_id"])
        keep(*arguments)

    monkeypatch.setattr(services.turns, "keep_receipt", erased_before)
    failed = client.post("/api/query", json={"question": QUESTION}).json
    assert failed["error"]["type"] == "TurnErasedMeanwhile"
    assert tables_with_secret(services) == set()


def test_without_a_stored_conversation_or_a_model_or_with_tools_none_is_searched(
    client: FlaskClient, stub: StubModel
) -> None:
    told(client, stub)
    body = {"model": "stub-model", "messages": [{"role": "user", "content": QUESTION}]}
    client.post("/v1/chat/completions", json=body)
    assert "earlier conversation" not in json.dumps(stub.requests[-1].messages)


def test_a_turn_that_was_cleared_in_another_conversation_is_found(client: FlaskClient, stub: StubModel) -> None:
    turn = told(client, stub)
    assert client.post(f"/api/conversations/{turn['conversation_id']}/clear").status_code == 200
    assert past(ask(client, QUESTION)) == [(turn["conversation_id"], turn["turn"])]
    assert "Bremerhaven" in json.dumps(stub.requests[-1].messages)
