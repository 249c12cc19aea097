"""Which documents a conversation is about: kept with it, set by the API, and left aside by a question that says so."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.testkit.samples import sample
from tests.testkit.stub_model import StubModel
from tests.web.conftest import PAGE, ask

GEESE = "The lighthouse keeper feeds seventeen geese."
DUCKS = "The lighthouse keeper feeds three ducks."
QUESTION = "What does the lighthouse keeper feed?"


def named(answer: dict[str, Any]) -> set[str]:
    return {source["document"] for source in answer["sources"]}


pytestmark = pytest.mark.library(("geese.txt", GEESE), ("ducks.txt", DUCKS))


@pytest.fixture
def library(client: FlaskClient) -> tuple[int, int]:
    client.patch("/api/documents/1", json={"tags": ["birds"]})
    return 1, 2


def set_scope(client: FlaskClient, conversation: int, **scope: Any) -> tuple[int, dict[str, Any]]:
    response = client.patch(f"/api/conversations/{conversation}", json=scope)
    data: dict[str, Any] = response.json
    return response.status_code, data


@pytest.mark.long
def test_the_scope_of_a_first_question_stays_with_its_conversation(
    client: FlaskClient, library: tuple[int, int]
) -> None:
    first = ask(client, QUESTION, document_ids=[library[0]])
    assert named(first) == {"geese.txt"}
    conversation = first["conversation_id"]
    assert client.get(f"/api/conversations/{conversation}").json["scope"] == {
        "document_ids": [library[0]],
        "tags": [],
        "library_ids": [],
        "after": None,
        "before": None,
    }
    assert named(ask(client, QUESTION, conversation_id=conversation)) == {"geese.txt"}


def test_a_question_can_be_about_something_else_without_changing_the_conversation(
    client: FlaskClient, library: tuple[int, int]
) -> None:
    conversation = ask(client, QUESTION, tags=["birds"])["conversation_id"]
    assert named(ask(client, QUESTION, conversation_id=conversation, document_ids=[library[1]])) == {"ducks.txt"}
    everything = ask(client, QUESTION, conversation_id=conversation, document_ids=None)
    assert named(everything) == {"geese.txt", "ducks.txt"}
    assert named(ask(client, QUESTION, conversation_id=conversation)) == {"geese.txt"}


def test_a_conversation_is_set_to_some_documents_and_back_to_all(client: FlaskClient, library: tuple[int, int]) -> None:
    conversation = ask(client, QUESTION)["conversation_id"]
    assert client.get(f"/api/conversations/{conversation}").json["scope"] is None
    status, data = set_scope(client, conversation, document_ids=[library[1], library[1]])
    assert (status, data["scope"]) == (
        200,
        {"document_ids": [library[1]], "tags": [], "library_ids": [], "after": None, "before": None},
    )
    assert named(ask(client, QUESTION, conversation_id=conversation)) == {"ducks.txt"}
    assert set_scope(client, conversation, tags=["birds"])[1]["scope"] == {
        "document_ids": [library[1]],
        "tags": ["birds"],
        "library_ids": [],
        "after": None,
        "before": None,
    }
    assert set_scope(client, conversation, title="Renamed")[1]["scope"]["tags"] == ["birds"]
    assert set_scope(client, conversation, document_ids=None, tags=None)[1]["scope"] is None
    assert named(ask(client, QUESTION, conversation_id=conversation)) == {"geese.txt", "ducks.txt"}
    assert client.get("/api/conversations").json["conversations"][0]["scope"] is None


@pytest.mark.parametrize(
    ("scope", "status", "words"),
    sample(
        [
            ({"document_ids": [99]}, 404, "There is no document 99;"),
            ({"document_ids": []}, 422, "a list of 1 to 1000 document ids, or null for all documents"),
            ({"tags": ["fish"]}, 422, 'No document has the tag "fish". Available: birds.'),
            ({"tags": "birds"}, 422, "tags is"),
        ],
        2,
    ),
)
def test_a_scope_of_what_is_not_there_is_refused(
    client: FlaskClient, library: tuple[int, int], scope: dict[str, Any], status: int, words: str
) -> None:
    conversation = ask(client, QUESTION)["conversation_id"]
    found, data = set_scope(client, conversation, **scope)
    assert found == status
    assert words in data["error"]["message"]
    assert client.get(f"/api/conversations/{conversation}").json["scope"] is None


@pytest.mark.long
def test_a_retry_under_the_same_key_is_the_same_question_whatever_the_conversation_is_about_by_then(
    client: FlaskClient, library: tuple[int, int]
) -> None:
    conversation = ask(client, QUESTION)["conversation_id"]
    body = {"question": QUESTION, "conversation_id": conversation}
    first = client.post("/api/query", json=body, headers={"Idempotency-Key": "k"}).json
    set_scope(client, conversation, document_ids=[library[1]])
    again = client.post("/api/query", json=body, headers={"Idempotency-Key": "k"}).json
    assert again["turn_id"] == first["turn_id"]


@pytest.mark.long
def test_a_receipt_says_what_its_conversation_was_about(client: FlaskClient, library: tuple[int, int]) -> None:
    conversation = ask(client, QUESTION, document_ids=[library[0]])["conversation_id"]
    turn = ask(client, QUESTION, conversation_id=conversation)
    assert "<dt>Filter</dt><dd>geese.txt</dd>" in client.get(f"/turns/{turn['turn_id']}/receipt").text


@pytest.mark.long
def test_all_documents_are_offered_where_the_model_cites_none_of_what_is_near(client: FlaskClient) -> None:
    answer = ask(client, "Which parliament votes about taxation for the keeper?", document_ids=[1])
    assert (answer["support"], answer["search"]["support"]) == ("uncited", "nothing_found")
    page = client.get(f"/turns/{answer['turn_id']}", headers=PAGE).text
    assert "Ask all documents in a new conversation" in page


def test_a_model_gets_what_a_chosen_document_has_whatever_its_words(client: FlaskClient, stub: StubModel) -> None:
    asked = "Sind Haustiere erlaubt?"
    assert named(ask(client, asked)) == set()
    assert named(ask(client, asked, document_ids=[2])) == {"ducks.txt"}
    assert DUCKS in str(stub.requests[-1].messages)
