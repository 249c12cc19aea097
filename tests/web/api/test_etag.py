"""The tag of a conversation: another one as soon as anything of it is new, the same while nothing is."""

from typing import Any

from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.web.api.conversations import kept
from tests.web.conftest import ask, until


def tag(client: FlaskClient, conversation: int = 1) -> str:
    response = client.head(f"/api/conversations/{conversation}")
    assert response.status_code == 200
    assert response.data == b""
    return response.headers["ETag"]


def test_it_stays_while_nothing_happens_and_is_the_same_everywhere(client: FlaskClient) -> None:
    ask(client)
    assert tag(client) == tag(client) == client.get("/api/conversations/1").headers["ETag"]
    assert f"data-tag='{tag(client)}'" in client.get("/conversations/1").text.replace("&#34;", '"')


CHANGES: list[tuple[str, str, Any]] = [
    ("PATCH", "/api/turns/1", {"pinned": True}),
    ("PATCH", "/api/turns/2", {"excluded": True}),
    ("PUT", "/api/turns/2/rating", {"rating": "up"}),
    ("PATCH", "/api/conversations/1", {"title": "Another"}),
    ("PATCH", "/api/conversations/1", {"max_history_turns": 1}),
    ("POST", "/api/turns/2/regenerate", None),
    ("POST", "/api/query", {"question": "Otherwise?", "edits_turn": 2}),
    ("POST", "/api/query", {"question": "More?", "conversation_id": 1}),
    ("POST", "/api/conversations/1/clear", None),
    ("DELETE", "/api/turns/1?permanently=1", None),
]


def test_it_moves_with_every_change(client: FlaskClient, services: Services) -> None:
    for conversation in (None, 1):
        kept(client, "Why?", conversation)
    for method, path, body in CHANGES:
        before = tag(client)
        assert client.open(path, method=method, json=body).status_code in (200, 202), path
        until(lambda: tag(client) != before)  # noqa: B023 - it is called here
        services.assistant.wait(2)


def test_it_moves_where_one_mark_takes_the_place_of_another(client: FlaskClient) -> None:
    for conversation in (None, 1):
        kept(client, "Why?", conversation)
    client.patch("/api/turns/1", json={"pinned": True})
    before = tag(client)
    client.patch("/api/turns/1", json={"pinned": False})
    client.patch("/api/turns/2", json={"pinned": True})
    assert tag(client) != before


def test_it_moves_with_a_version_that_is_chosen(client: FlaskClient) -> None:
    ask(client)
    client.post("/api/turns/1/regenerate")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    before = tag(client)
    client.post("/api/turns/1/versions/1/choose")
    assert tag(client) != before


def test_it_moves_with_a_rating_that_is_taken_back_and_with_an_undo(client: FlaskClient) -> None:
    ask(client)
    client.put("/api/turns/1/rating", json={"rating": "up"})
    before = tag(client)
    assert client.delete("/api/turns/1/rating").status_code == 200
    assert tag(client) != before
    client.post("/api/conversations/1/clear")
    before = tag(client)
    client.post("/api/conversations/1/undo")
    assert tag(client) != before


def test_a_conversation_that_is_gone_has_none(client: FlaskClient) -> None:
    ask(client)
    client.delete("/api/conversations/1")
    assert client.head("/api/conversations/1").status_code == 404
