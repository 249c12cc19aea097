"""Documents that state different values: the reader and the model are told, and the receipt has it."""

import pytest
from flask.testing import FlaskClient
from msgspec import convert

from rag_assistant.records import Disagreement
from rag_assistant.services import Services
from rag_assistant.web.mcp.tools import AssistantTools
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, events_of, no_model

OLD = "# Refunds\n\nValid from: 2023-01-04\n\nCustomers may return goods within 30 days of purchase for a full refund."
NEW = OLD.replace("2023-01-04", "2024-05-31").replace("30 days", "60 days")
QUESTION = "How many days do I have to return goods?"


pytestmark = pytest.mark.library(
    ("refunds-2023.md", OLD), ("refunds-2024.md", NEW), ("herons.md", "Herons nest in March and in April.")
)


def test_the_caller_the_model_and_the_receipt_are_told(client: FlaskClient, stub: StubModel) -> None:
    answer = ask(client, QUESTION)
    (told,) = answer["search"]["disagreements"]
    stated = dict(zip(told["values"], told["passages"], strict=True))
    assert stated.keys() == {"30 days", "60 days"}
    assert told["newer"] == "60 days"
    assert all(value in answer["sources"][numbers[0] - 1]["text"] for value, numbers in stated.items())
    behind_passages = str(stub.requests[-1].messages[-1]["content"]).partition("</passages>")[2]
    assert ", ".join(f"{value} {numbers}" for value, numbers in stated.items()) in behind_passages
    assert "do not choose silently" in behind_passages
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").get_json()
    assert receipt["search"]["disagreements"] == [told]
    page = client.get(f"/turns/{answer['turn_id']}/receipt").text
    assert "Disagreement" in page


def test_nothing_is_told_where_they_agree(client: FlaskClient, stub: StubModel) -> None:
    answer = ask(client, "When do herons nest?")
    assert "disagreements" not in answer["search"]
    assert "different values" not in str(stub.requests[-1].messages)


def test_a_stream_tells_the_same_as_a_plain_answer(client: FlaskClient) -> None:
    plain = ask(client, QUESTION)
    events = events_of(client.post("/api/query/stream", json={"question": QUESTION}).data)
    start = next(data for name, _, data in events if name == "start")
    assert start["search"]["disagreements"] == plain["search"]["disagreements"]


@no_model
def test_quotes_tell_it_too(client: FlaskClient) -> None:
    answer = ask(client, QUESTION)
    assert answer["model"] == "quotes"
    assert sorted(answer["search"]["disagreements"][0]["values"]) == ["30 days", "60 days"]


def test_what_an_answer_does_not_rest_on_is_not_told(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Herons nest in March [2]."))
    answer = ask(client, f"{QUESTION} And when do herons nest?")
    cited = [one["n"] for one in answer["sources"] if one["cited"]]
    assert cited == [2]
    assert "disagreements" not in answer["search"]
    assert "different values" in str(stub.requests[-1].messages), "the model decides what it answers"


@pytest.mark.long
def test_a_follow_up_is_told_what_is_about_it_alone(client: FlaskClient) -> None:
    first = ask(client, QUESTION)
    answer = ask(client, "And what about herons?", conversation_id=first["conversation_id"])
    assert "disagreements" not in answer["search"]
    conversation = ask(client, QUESTION)["conversation_id"]
    (told,) = ask(client, "And in 2023?", conversation_id=conversation)["search"]["disagreements"]
    assert (told["newer"], told["time"]) == ("30 days", "2023")


@pytest.mark.long
def test_every_place_that_shows_the_sources_of_an_answer_says_it(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    stub.default = Reply("30 days [1].")
    answer = ask(client, QUESTION)
    sentence = convert(answer["search"]["disagreements"][0], Disagreement).sentence
    assert sentence.endswith("When this was answered, the newer document said 60 days.")
    listed = [f"[{one['n']}] {one['document']}, {one['date']}" for one in answer["sources"][:2]]
    exported = client.get(f"/api/conversations/{answer['conversation_id']}/export?format=markdown").text
    to_a_client = AssistantTools(services).call("ask", {"question": QUESTION})["content"][0]["text"]
    assert [line for text in (exported, to_a_client) for line in (sentence, *listed) if line not in text] == []
    assert (
        "When this was answered, the newer document said 60 days."
        in client.get(f"/turns/{answer['turn_id']}/receipt").text
    )


def test_a_corrected_date_leaves_no_false_statement_at_an_older_answer(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("30 days [1].")
    answer = ask(client, QUESTION)
    old = next(one["document_id"] for one in answer["sources"] if "30 days" in one["text"])
    assert client.patch(f"/api/documents/{old}", json={"date": "2025-01-01"}).status_code == 200
    for page in (f"/conversations/{answer['conversation_id']}", f"/turns/{answer['turn_id']}/receipt"):
        assert "When this was answered, the newer document said 60 days." in client.get(page).text
    assert ask(client, QUESTION)["search"]["disagreements"][0]["newer"] == "30 days"
