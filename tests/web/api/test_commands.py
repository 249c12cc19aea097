"""Commands in a conversation: what each does, and what is none."""

import json

import pytest
from flask.testing import FlaskClient

from rag_assistant.conversations.commands import is_command
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import conversation_of, run, said, turn_ids, view
from tests.web.conftest import ask


def test_history_tells_what_is_kept_and_what_is_seen(client: FlaskClient) -> None:
    conversation = conversation_of(client, 7)
    text = run(client, conversation, "/history").json["text"]
    assert "7 turns.\n" in text
    assert "5 of 7 earlier turns (2 over the turn limit)" in text
    assert "- turns 1 and 2: over the turn limit" in text


@pytest.mark.parametrize("command", ["/clear", pytest.param("/clear-history", marks=pytest.mark.long), "/reset"])
def test_clear_and_reset_let_the_model_see_nothing_and_lose_nothing(
    client: FlaskClient, stub: StubModel, command: str
) -> None:
    conversation = conversation_of(client, 3)
    client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"pinned": True})
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 9})
    result = run(client, conversation, command).json
    assert result["fold"] is (command == "/clear")
    assert result["view"]["kept_turns"] == []
    assert result["view"]["max_history_turns"] == (5 if command == "/reset" else 9)
    assert ask(client, "Question 4.", conversation_id=conversation)["history_trimmed"] is False
    assert said(stub) == ["Question 4"]
    assert len(turn_ids(client, conversation)) == 4
    run(client, conversation, "/undo")
    ask(client, "Question 5.", conversation_id=conversation)
    assert said(stub) == [f"Question {n}" for n in range(1, 6)]
    assert view(client, conversation)["max_history_turns"] == 9


def test_compact_shows_its_summary(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 4)
    stub.replies.append(Reply("What was said."))
    result = run(client, conversation, "/compact").json
    assert result["text"].startswith("The model now sees a summary of turns 1 and 2.")
    assert result["text"].endswith("What was said.")
    assert "Summary removed." in run(client, conversation, "/undo").json["text"]


@pytest.mark.long
def test_the_history_of_a_summary_whose_turns_are_all_pinned_names_none_of_them(
    client: FlaskClient, stub: StubModel
) -> None:
    conversation = conversation_of(client, 4)
    stub.replies.append(Reply("What was said."))
    run(client, conversation, "/compact")
    for turn in client.get(f"/api/conversations/{conversation}/turns").json["turns"][:2]:
        assert client.patch(f"/api/turns/{turn['turn_id']}", json={"pinned": True}).status_code == 200
    text = run(client, conversation, "/history").json["text"]
    assert "Summarised: turns 1 and 2." in text
    assert "- " not in text


def test_help_lists_every_command(client: FlaskClient) -> None:
    text = run(client, conversation_of(client, 1), "/help").json["text"]
    names = [line.split(":")[0] for line in text.splitlines()]
    assert names == [
        f"- /{n}" for n in ("history", "clear-history", "clear", "compact", "reset", "undo", "remember", "help")
    ]


def test_an_unknown_command_is_named(client: FlaskClient) -> None:
    refused = run(client, conversation_of(client, 1), "/forget")
    assert refused.status_code == 422
    assert 'Unknown command "/forget". Available: /history,' in refused.json["error"]["message"]
    assert run(client, 99, "/help").status_code == 404


def test_nothing_changes_the_view_of_an_answer_that_is_being_written(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 2)
    stub.replies.append(Reply("Slow.", hang_at=0))
    response = client.post(
        "/api/query/stream", json={"question": "Wait.", "conversation_id": conversation}, buffered=False
    )
    pieces = response.iter_encoded()
    turn = json.loads(next(pieces).decode().split("data: ", 1)[1])["turn_id"]
    for path in ("clear", "reset", "undo", "purge"):
        refused = client.post(f"/api/conversations/{conversation}/{path}")
        assert (path, refused.status_code) == (path, 409)
    client.post(f"/api/turns/{turn}/stop")
    response.close()


@pytest.mark.long
def test_clearing_what_is_clear_is_no_step_that_could_be_undone(client: FlaskClient) -> None:
    conversation = conversation_of(client, 2)
    first = turn_ids(client, conversation)[0]
    run(client, conversation, "/clear")
    run(client, conversation, "/clear")
    assert run(client, conversation, "/undo").json["text"] == "The model sees what it saw before you started over."
    assert view(client, conversation)["sentence"] == "2 of 2 earlier turns"
    client.patch(f"/api/turns/{first}", json={"pinned": True})
    client.patch(f"/api/turns/{first}", json={"pinned": True})
    run(client, conversation, "/undo")
    assert client.get(f"/api/turns/{first}").json["pinned"] is False
    assert run(client, conversation, "/undo").json["error"]["type"] == "NothingToUndo"


def test_a_command_takes_nothing_behind_it(client: FlaskClient) -> None:
    refused = run(client, conversation_of(client, 1), "/undo 3")
    assert (refused.status_code, "takes no arguments" in refused.json["error"]["message"]) == (422, True)
    assert [is_command(text) for text in ("/undo 3", "/UNDO", "/foo", "/foo bar", "/etc/hosts", "a /undo", "/")] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip
