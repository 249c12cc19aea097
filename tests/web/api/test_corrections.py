"""Corrections travel: what was changed after an answer that rests on it stands beside that answer."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import kept
from tests.web.conftest import PAGE, ask, until, upload

LAMP = "The lighthouse lamp burns oil from whales."
QUESTION = "What does the lighthouse lamp burn?"


def corrections_of(client: FlaskClient, turn_id: int) -> list[str]:
    """Return the sentences, which are the same in every place that shows them."""
    alone = client.get(f"/api/turns/{turn_id}").json
    listed = client.get(f"/api/conversations/{alone['conversation_id']}/turns").json["turns"]
    assert next(one["corrections"] for one in listed if one["turn_id"] == turn_id) == alone["corrections"]
    sentences = [one["sentence"] for one in alone["corrections"]]
    page = client.get(f"/turns/{turn_id}", headers=PAGE).text
    assert page.count("note corrected") == len(sentences)
    assert all(sentence in page for sentence in sentences)
    return sentences


def put_in_its_place(client: FlaskClient, document: int, text: str) -> None:
    upload(client, text, "lamp.txt", wait=False, replaces=str(document))
    until(lambda: text.split("\n")[0] in client.get(f"/documents/{document}", headers=PAGE).text)


pytestmark = pytest.mark.library(("lamp.txt", LAMP))


@pytest.fixture
def document() -> int:
    return 1


@pytest.fixture
def answer(client: FlaskClient, stub: StubModel, document: int) -> dict[str, Any]:
    """An answer that cites the library."""
    stub.replies.append(Reply("Oil from whales [1]."))
    return ask(client, QUESTION)


@pytest.mark.long
def test_nothing_is_said_while_all_is_as_it_was(client: FlaskClient, answer: dict[str, Any], document: int) -> None:
    client.patch(f"/api/documents/{document}", json={"name": "light.txt"})
    assert corrections_of(client, answer["turn_id"]) == []


def test_an_answer_says_that_its_source_was_deleted(client: FlaskClient, answer: dict[str, Any], document: int) -> None:
    client.delete(f"/api/documents/{document}")
    assert corrections_of(client, answer["turn_id"]) == ["“lamp.txt” (source 1) has since been deleted."]


def test_an_answer_says_that_its_source_has_changed(client: FlaskClient, answer: dict[str, Any], document: int) -> None:
    put_in_its_place(client, document, f"Chapter one.\n\n{LAMP}")
    assert corrections_of(client, answer["turn_id"]) == [], "the passage is still in it"
    put_in_its_place(client, document, "The lighthouse lamp burns rapeseed oil.")
    assert corrections_of(client, answer["turn_id"]) == ["“lamp.txt” has changed since, in the passage of source 1."]
    assert client.get(f"/api/turns/{answer['turn_id']}").json["corrections"][0] == {
        "what": "source",
        "change": "changed",
        "n": 1,
        "document": "lamp.txt",
        "sentence": "“lamp.txt” has changed since, in the passage of source 1.",
    }


def test_a_passage_that_nobody_cited_may_change(client: FlaskClient, stub: StubModel, document: int) -> None:
    stub.replies.append(Reply("I cannot say."))
    turn = ask(client, QUESTION)["turn_id"]
    client.delete(f"/api/documents/{document}")
    assert corrections_of(client, turn) == []


@pytest.mark.long
def test_an_excluded_turn_is_named_by_the_answers_that_had_it_in_view(client: FlaskClient) -> None:
    first = ask(client, "Question 1?")
    saw = ask(client, "Question 2?", conversation_id=first["conversation_id"])
    client.patch(f"/api/turns/{first['turn_id']}", json={"excluded": True})
    did_not = ask(client, "Question 3?", conversation_id=first["conversation_id"])
    assert corrections_of(client, saw["turn_id"]) == ["Turn 1 was sent with this answer and has since been excluded."]
    assert corrections_of(client, did_not["turn_id"]) == []
    assert corrections_of(client, first["turn_id"]) == []
    client.post(f"/api/conversations/{first['conversation_id']}/undo", json={})
    assert corrections_of(client, saw["turn_id"]) == []


@pytest.mark.long
def test_an_erased_turn_is_named_by_the_answers_that_had_it_in_view(client: FlaskClient) -> None:
    first = ask(client, "Question 1?")
    saw = ask(client, "Question 2?", conversation_id=first["conversation_id"])
    did_not = ask(client, "Question 3?", conversation_id=first["conversation_id"], max_history_turns=0)
    client.delete(f"/api/turns/{first['turn_id']}?permanently=1")
    assert corrections_of(client, saw["turn_id"]) == ["Turn 1 was sent with this answer and has since been erased."]
    assert corrections_of(client, did_not["turn_id"]) == []


@pytest.mark.long
def test_an_edited_summary_is_named_by_the_answers_that_had_it_in_view(client: FlaskClient, stub: StubModel) -> None:
    before = ask(client, "Question 1?")
    conversation = before["conversation_id"]
    for number in range(2, 5):
        kept(client, f"Question {number}?", conversation)
    stub.replies.append(Reply("They spoke."))
    client.post(f"/api/conversations/{conversation}/compact", json={})
    saw = ask(client, "Question 5?", conversation_id=conversation)
    assert saw["history"]["summary_sent"]
    client.put(f"/api/conversations/{conversation}/summary", json={"text": "They spoke of geese."})
    after = ask(client, "Question 6?", conversation_id=conversation)
    assert corrections_of(client, saw["turn_id"]) == ["The summary sent with this answer has since been edited."]
    for turn in (before, after):
        assert corrections_of(client, turn["turn_id"]) == []


@pytest.mark.long
def test_an_edit_that_was_undone_is_none(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "Question 1?")["conversation_id"]
    for number in range(2, 5):
        kept(client, f"Question {number}?", conversation)
    stub.replies.append(Reply("They spoke."))
    client.post(f"/api/conversations/{conversation}/compact", json={})
    saw = ask(client, "Question 5?", conversation_id=conversation)
    client.put(f"/api/conversations/{conversation}/summary", json={"text": "They spoke of geese."})
    client.post(f"/api/conversations/{conversation}/undo", json={})
    assert corrections_of(client, saw["turn_id"]) == []


@pytest.mark.long
def test_a_line_of_a_summary_says_that_its_source_has_changed(
    client: FlaskClient, stub: StubModel, answer: dict[str, Any], document: int
) -> None:
    conversation = answer["conversation_id"]
    for question in ("Where do geese sleep?", "How old is the boat?", "Who paints the tower?"):
        kept(client, question, conversation)
    stub.replies.append(Reply("The lighthouse lamp burns oil from whales. The user asked where geese sleep."))
    client.post(f"/api/conversations/{conversation}/compact", json={})
    client.delete(f"/api/documents/{document}")
    lines = client.get(f"/api/conversations/{conversation}").json["view"]["summary"]["lines"]
    assert [(one["turns"], len(one["corrections"])) for one in lines] == [([1], 1), ([2], 0)]
    sentence = "“lamp.txt” (source 1 of turn 1) has since been deleted."
    assert lines[0]["corrections"][0]["sentence"] == sentence
    page = client.get(f"/conversations/{conversation}", headers=PAGE).text
    assert sentence in page
    assert f'<a href="/conversations/{conversation}?at=1#turn-1">Turn 1: </a>The lighthouse lamp' in page


def test_what_a_person_said_rests_on_no_document(
    client: FlaskClient, stub: StubModel, answer: dict[str, Any], document: int
) -> None:
    conversation = answer["conversation_id"]
    for question in ("Where do geese sleep?", "How old is the boat?", "Who paints the tower?"):
        kept(client, question, conversation)
    stub.replies.extend([Reply("   ")] * 2)
    client.post(f"/api/conversations/{conversation}/compact", json={})
    client.delete(f"/api/documents/{document}")
    lines = client.get(f"/api/conversations/{conversation}").json["view"]["summary"]["lines"]
    assert [(one["text"], len(one["corrections"])) for one in lines[:2]] == [(QUESTION, 0), ("Oil from whales.", 1)]
