"""Ratings as plain forms: the thumbs below an answer, and the field for the right one."""

import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post, until, upload


@pytest.fixture
def file(environment: dict[str, str]) -> Path:
    return Path(environment["SETTINGS_FILE"])


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


def test_the_list_shows_what_came_of_each_question(client: FlaskClient, stub: StubModel, services: Services) -> None:
    assert "No rated answers yet" in client.get("/ratings", headers=PAGE).text
    upload(client, "The ferry leaves the harbour at nine.")
    stub.replies.extend([Reply("At nine [1]."), Reply("At <ten>.")])
    turn = ask(client, "When does the <ferry> leave the harbour?")["turn_id"]
    post(client, f"/turns/{turn}/rating", rating="up")
    assert "Asked again" not in client.get("/ratings", headers=PAGE).text
    services.evaluation.ask_again(services.evaluation.rated()[0])
    page = client.get("/ratings", headers=PAGE).text
    for shown in (
        '<span class="verdict worse">Worse</span>',
        " · right passage: #1 · cited: yes → no · wording kept: 100% → 0%</p>",
        "When does the &lt;ferry&gt; leave", "At nine [1].", "At &lt;ten&gt;.", 'href="/conversations/1?at=1#turn-1"',
        "It no longer cites them. It contains less of the right answer.",
    ):  # fmt: skip
        assert shown in page
    assert "When does" not in client.get(f"/ratings?from={turn}", headers=PAGE).text.partition("<main")[2]


def test_a_rated_question_is_asked_again_without_scripts_and_others_are_not(
    client: FlaskClient, stub: StubModel
) -> None:
    upload(client, "The ferry leaves the harbour at nine.")
    stub.replies.extend([Reply("At nine [1]."), Reply("Nobody knows."), Reply("At nine [1].")])
    turn = ask(client, "When does the ferry leave the harbour?")["turn_id"]
    other = ask(client, "Who is that?")["turn_id"]
    post(client, f"/turns/{turn}/rating", rating="up")
    assert post(client, f"/turns/{turn}/again") == (303, f"/ratings#rated-{turn}")
    assert '<span class="verdict same">Same</span>' in client.get("/ratings", headers=PAGE).text
    assert post(client, f"/turns/{other}/again")[0] == 409
    assert post(client, "/turns/99/again")[0] == 404
    stub.replies.append(Reply(status=401))
    failed = client.post(f"/turns/{turn}/again?part=1", headers=PAGE).text
    assert '<span class="verdict failed">Failed</span>' in failed
    assert "<html" not in failed


def test_asking_again_counts_against_a_persons_limits(client: FlaskClient, services: Services, file: Path) -> None:
    add_person(services, "Ann", "admin")
    page = client_of(client.application, "Ann")
    turn = ask(page)["turn_id"]
    post(page, f"/turns/{turn}/rating", rating="up")
    file.write_text('{"max_questions_per_minute": 2}')
    until(lambda: services.settings.current.max_questions_per_minute == 2)
    assert post(page, f"/turns/{turn}/again")[0] == 303
    assert post(page, f"/turns/{turn}/again")[0] == 429


def test_asking_again_takes_one_of_the_places_of_those_who_wait(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client)["turn_id"]
    post(client, f"/turns/{turn}/rating", rating="up")
    readers = client.application.extensions["readers"]
    readers.close()
    assert post(client, f"/turns/{turn}/again")[0] == 503
    assert len(stub.requests) == 1
