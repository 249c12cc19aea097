"""Conversations over the API: list, show, name, find, put away, bring back, purge, read by page."""

from pathlib import Path

from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask


def test_a_conversation_is_renamed(client: FlaskClient) -> None:
    conversation = ask(client)["conversation_id"]
    changed = client.patch(f"/api/conversations/{conversation}", json={"title": "About why"})
    assert changed.json["title"] == "About why"
    assert client.get(f"/api/conversations/{conversation}").json["title"] == "About why"


def test_a_deleted_conversation_is_not_there_until_it_is_restored(client: FlaskClient) -> None:
    answer = ask(client)
    path = f"/api/conversations/{answer['conversation_id']}"
    assert client.delete(path).status_code == 204
    for gone in (path, f"{path}/turns", f"/api/turns/{answer['turn_id']}", f"/api/turns/{answer['turn_id']}/receipt"):
        assert client.get(gone).status_code == 404, gone
    assert client.delete(path).status_code == 404
    assert client.get("/api/conversations").json["conversations"] == []
    assert client.post(f"{path}/restore").status_code == 200
    assert client.get(f"/api/turns/{answer['turn_id']}").json == answer | {"corrections": []}


def test_an_empty_conversation_can_be_made_first(client: FlaskClient) -> None:
    made = client.post("/api/conversations", json={"title": "Plans"})
    assert (made.status_code, made.json["title"], made.json["turns"]) == (201, "Plans", 0)
    assert ask(client, conversation_id=made.json["conversation_id"])["turn"] == 1


def test_turns_come_by_page_and_say_where_the_next_begins(client: FlaskClient) -> None:
    conversation = ask(client, "Question 1")["conversation_id"]
    for n in range(2, 6):
        ask(client, f"Question {n}", conversation_id=conversation)
    path = f"/api/conversations/{conversation}/turns"
    latest = client.get(f"{path}?limit=2").json
    assert [turn["question"] for turn in latest["turns"]] == ["Question 4", "Question 5"]
    assert latest["total"] == 5
    earlier = client.get(f"{path}?limit=9&cursor={latest['next_cursor']}").json
    assert [turn["turn"] for turn in earlier["turns"]] == [1, 2, 3]
    assert earlier["next_cursor"] is None
    assert "limit is" in client.get(f"{path}?limit=0").json["error"]["message"]


def test_wrong_changes_are_refused_by_name(client: FlaskClient) -> None:
    path = f"/api/conversations/{ask(client)['conversation_id']}"
    for body, words in [
        ({"max_history_turns": -1}, "max_history_turns is -1; it must be a whole number, 0 or more, or null"),
        ({"max_history_turns": "five"}, 'max_history_turns is "five"'),
        ({"title": ""}, 'title is ""; it must be text of 1 to 200 characters'),
        ({"titel": "x"}, 'Did you mean "title"?'),
    ]:
        response = client.patch(path, json=body)
        assert response.status_code == 422, body
        assert words in response.json["error"]["message"]


def test_conversations_are_found_by_what_was_said(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([Reply("Its wings are blue."), Reply("In Lisbon.")])
    bird = ask(client, "Tell me of the kingfisher.")["conversation_id"]
    city = ask(client, "Where is the castle?")["conversation_id"]

    def found(words: str) -> list[int]:
        listed = client.get("/api/conversations", query_string={"q": words}).json["conversations"]
        return [one["conversation_id"] for one in listed]

    assert found("wings") == [bird]
    assert found("lisbon castle") == [city]
    assert found("submarine") == []
    refused = client.get("/api/conversations?q=wings&project_id=1")
    assert (refused.status_code, "project_id" in refused.json["error"]["message"]) == (422, True)
    assert found("the") == [] or set(found("the")) <= {bird, city}
    client.delete(f"/api/conversations/{bird}")
    assert found("kingfisher") == []


def test_a_purged_conversation_leaves_no_trace(
    client: FlaskClient, services: Services, environment: dict[str, str]
) -> None:
    secret = "Xylophonsecret4711"
    conversation = ask(client, f"My password is {secret}.")["conversation_id"]
    assert client.post(f"/api/conversations/{conversation}/purge").status_code == 204
    assert client.get(f"/api/conversations/{conversation}").status_code == 404
    assert client.post(f"/api/conversations/{conversation}/restore").status_code == 404
    assert client.post(f"/api/conversations/{conversation}/purge").status_code == 404
    for path in Path(environment["DATA_DIR"]).rglob("*"):
        if path.is_file():
            held = path.read_bytes().lower()
            assert secret.lower().encode() not in held, path


def test_an_empty_conversation_is_named_by_its_first_question(client: FlaskClient) -> None:
    made = client.post("/api/conversations").json
    ask(client, "Why is the sky blue?", conversation_id=made["conversation_id"])
    assert client.get(f"/api/conversations/{made['conversation_id']}").json["title"] == "Why is the sky blue?"
    named = client.post("/api/conversations", json={"title": "Mine"}).json
    ask(client, "Why?", conversation_id=named["conversation_id"])
    assert client.get(f"/api/conversations/{named['conversation_id']}").json["title"] == "Mine"
