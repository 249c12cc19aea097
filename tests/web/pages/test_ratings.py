"""Ratings as plain forms: the thumbs below an answer, and the field for the right one."""

import re

from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post


def pressed(client: FlaskClient) -> list[tuple[str, str]]:
    """Return the thumbs of the first turn: what each would choose, and whether it is pressed."""
    page = client.get("/turns/1", headers=PAGE).text
    return re.findall(r'name="rating" value="(\w*)" type="submit" aria-pressed="(\w+)"', page)


def test_an_answer_is_rated_and_that_is_taken_back_without_scripts(client: FlaskClient) -> None:
    ask(client)
    assert pressed(client) == [("up", "false"), ("down", "false")]
    assert post(client, "/turns/1/rating", rating="down") == (303, "/conversations/1?at=1#turn-1")
    assert pressed(client) == [("up", "false"), ("", "true")]
    post(client, "/turns/1/rating", rating="down", right_answer="Because <of> that.")
    assert "Right answer: <bdi>Because &lt;of&gt; that.</bdi>" in client.get("/turns/1", headers=PAGE).text
    post(client, "/turns/1/rating", rating="up")
    assert client.get("/api/turns/1").json["rating"]["right_answer"] == "Because <of> that."
    post(client, "/turns/1/rating", rating="")
    assert client.get("/api/turns/1").json["rating"] is None


def test_what_cannot_be_rated_has_no_thumbs(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply(status=401))
    client.post("/api/query", json={"question": "Why?"})
    assert pressed(client) == []
    assert post(client, "/turns/1/rating", rating="up")[0] == 409
    assert post(client, "/turns/1/rating", rating="sideways")[0] == 422


def test_the_list_shows_each_question_with_the_answer_that_was_rated(client: FlaskClient, stub: StubModel) -> None:
    assert "No rated answers yet" in client.get("/ratings", headers=PAGE).text
    stub.replies.append(Reply("At <nine>."))
    turn = ask(client, "When does the <ferry> leave the harbour?")["turn_id"]
    post(client, f"/turns/{turn}/rating", rating="down", right_answer="At <ten>.")
    page = client.get("/ratings", headers=PAGE).text
    for shown in (
        "When does the &lt;ferry&gt; leave", "At &lt;nine&gt;.", 'href="/conversations/1?at=1#turn-1"',
        "Right answer: <bdi>At &lt;ten&gt;.</bdi>", "Bad answer:",
    ):  # fmt: skip
        assert shown in page
    assert "When does" not in client.get(f"/ratings?from={turn}", headers=PAGE).text.partition("<main")[2]
