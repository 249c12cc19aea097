"""Ratings: of one answer of a turn, with the right answer, changed and taken back."""

from typing import Any

from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.test_versions import regenerated
from tests.web.conftest import ask, both_engines


def rate(client: FlaskClient, turn: int, rating: str, **fields: Any) -> Any:
    response = client.put(f"/api/turns/{turn}/rating", json={"rating": rating} | fields)
    assert response.status_code == 200, response.text
    return response.json["rating"]


def listed(client: FlaskClient, query: str = "") -> Any:
    return client.get(f"/api/ratings{query}").json


pytestmark = both_engines


def test_a_rating_is_given_changed_and_taken_back(client: FlaskClient) -> None:
    turn = ask(client)["turn_id"]
    assert client.get(f"/api/turns/{turn}").json["rating"] is None
    assert rate(client, turn, "up") | {"rated_at": ""} == {
        "rating": "up", "version": 1, "right_answer": None, "rated_at": "",
    }  # fmt: skip
    assert rate(client, turn, "down", right_answer="  Because. ")["right_answer"] == "Because."
    assert rate(client, turn, "up")["right_answer"] == "Because.", "what is right holds for the question"
    assert rate(client, turn, "up", right_answer=None)["right_answer"] is None
    assert client.delete(f"/api/turns/{turn}/rating").json["rating"] is None
    assert listed(client)["ratings"] == []


def test_the_list_has_the_answer_that_was_rated_and_leaves_out_the_trash(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend(Reply(text) for text in ("The first.", "Another.", "The second."))
    first, other = ask(client, "One"), ask(client, "Two")
    rate(client, first["turn_id"], "up")
    rate(client, other["turn_id"], "down")
    assert regenerated(client, first["turn_id"])["rating"]["version"] == 1
    page = listed(client, "?limit=1")
    assert [(one["question"], one["rating"]["rating"]) for one in page["ratings"]] == [("Two", "down")]
    page = listed(client, f"?cursor={page['next_cursor']}")
    assert [(one["question"], one["answer"]) for one in page["ratings"]] == [("One", "The first.")]
    assert page["next_cursor"] is None
    client.delete(f"/api/conversations/{first['conversation_id']}")
    assert [one["question"] for one in listed(client)["ratings"]] == ["Two"]


def test_a_branch_does_not_repeat_a_rating(client: FlaskClient) -> None:
    first = ask(client, "One")
    rate(client, first["turn_id"], "up")
    second = ask(client, "Two", conversation_id=first["conversation_id"])
    ask(client, "Three", edits_turn=second["turn_id"])
    assert len(listed(client)["ratings"]) == 1


def test_an_erased_turn_has_no_rating(client: FlaskClient) -> None:
    turn = ask(client)["turn_id"]
    rate(client, turn, "down", right_answer="Because.")
    assert client.delete(f"/api/turns/{turn}?permanently=1").json["rating"] is None
    assert listed(client)["ratings"] == []
    assert client.put(f"/api/turns/{turn}/rating", json={"rating": "up"}).status_code == 409


def test_what_is_no_answer_or_no_rating_is_refused(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply(status=401))
    failed = client.post("/api/query", json={"question": "Why?"}).json["turn_id"]
    refused = client.put(f"/api/turns/{failed}/rating", json={"rating": "up"})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "TurnNotRatable")
    turn = ask(client)["turn_id"]
    for body, said in (
        ({}, "rating"),
        ({"rating": "sideways"}, 'rating is "sideways"; it must be up or down.'),
        ({"rating": "up", "right_answer": "x" * 4001}, "text of up to 4000 characters"),
        ({"rating": "up", "stars": 5}, "stars"),
    ):
        refused = client.put(f"/api/turns/{turn}/rating", json=body)
        assert refused.status_code == 422
        assert said in refused.json["error"]["message"]
    assert client.put("/api/turns/99/rating", json={"rating": "up"}).status_code == 404


def test_a_rating_is_exported(client: FlaskClient) -> None:
    first = ask(client)
    rate(client, first["turn_id"], "down", right_answer="Because.\nOf that.")
    path = f"/api/conversations/{first['conversation_id']}/export"
    assert "*Rated down.*\n\n> Right answer:\n>\n> Because.\n> Of that.\n" in client.get(path).text
    assert client.get(f"{path}?format=json").json["turns"][0]["rating"]["right_answer"] == "Because.\nOf that."
