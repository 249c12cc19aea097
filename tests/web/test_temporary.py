"""A temporary conversation is kept by whoever asks: nothing of it stays here, in no row, no file and no log."""

import logging
from html import unescape
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select

from rag_assistant.services import Services
from rag_assistant.storage.tables import metadata
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import events_of, upload
from tests.web.leftovers import SECRET, files_with, tables_with_secret


def ask_temporarily(client: FlaskClient, query: str = "", **body: Any) -> Any:
    response = client.post(f"/api/query/temporary{query}", json=body)
    assert response.status_code == 200, response.text
    return events_of(response.data)


def counts(services: Services) -> dict[str, int]:
    with services.database.read() as connection:
        tables = metadata.tables.items()
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one() for name, table in tables
        }


@pytest.mark.parametrize("query", ["", "?html=1"])
def test_nothing_of_it_is_stored_and_the_model_sees_what_came_along(
    client: FlaskClient, stub: StubModel, services: Services, caplog: pytest.LogCaptureFixture, query: str
) -> None:
    caplog.set_level(logging.INFO)
    number = upload(client, "The lighthouse keeper feeds seventeen geese.")["document_id"]
    before = counts(services)
    stub.replies.append(Reply(f"Seventeen {SECRET} [1]."))
    earlier = [{"question": f"Who is {SECRET}?", "answer": f"The keeper, {SECRET}."}]
    *_, (name, _, data) = ask_temporarily(
        client, query, question=f"How many geese does the keeper feed, {SECRET}?", earlier=earlier
    )
    assert (name, data["status"], data["answer"]) == ("end", "completed", f"Seventeen {SECRET} [1].")
    sent = [message["content"] for message in stub.requests[-1].body["messages"] if message["role"] != "system"]
    assert sent[:2] == [f"Who is {SECRET}?", f"The keeper, {SECRET}."]
    assert (data["turn"], data["history"]["turns_kept"], data["sources"][0]["document_id"]) == (2, 1, number)
    assert counts(services) == before
    assert tables_with_secret(services) == set()
    services.database.checkpoint()
    assert files_with(services, SECRET.encode()) == []
    assert SECRET not in caplog.text
    assert "Turn -" not in caplog.text
    assert client.get(f"/api/conversations?q={SECRET}").json["conversations"] == []


def test_the_page_gets_its_turn_with_sources_that_open_and_without_what_needs_an_id(
    client: FlaskClient, stub: StubModel
) -> None:
    number = upload(client, "The lighthouse keeper feeds seventeen geese.")["document_id"]
    stub.replies.append(Reply("Seventeen **geese** [1]."))
    html = ask_temporarily(client, "?html=1", question="How many geese?")[-1][2]["html"]
    assert "<strong>geese</strong>" in html
    assert f'href="/documents/{number}?start=0&amp;end=44#passage"' in html
    assert "<code hidden>Seventeen **geese** [1].</code>" in html, "what its copy button copies"
    assert "/turns/" not in html
    page = client.get("/temporary").text
    assert "Nothing is stored." in page
    assert "Type @ for documents and tags." in page
    assert "data-command=" not in page, "commands are for what is stored"
    composer = 'data-asks data-temporary action="/temporary" data-stream="/api/query/temporary?html=1">'
    assert composer in " ".join(page.split()), "a form that went to /ask without scripts would be stored"


@pytest.mark.long
def test_its_receipt_comes_with_the_turn_and_needs_nothing_stored(client: FlaskClient, stub: StubModel) -> None:
    number = upload(client, "The lighthouse keeper feeds seventeen geese.")["document_id"]
    earlier = [{"question": f"Question {n}.", "answer": f"Answer {n}."} for n in range(1, 8)]
    html = ask_temporarily(client, "?html=1", question="How many geese?", earlier=earlier)[-1][2]["html"]
    receipt = unescape(html.partition("<template>")[2].partition("</template>")[0])
    assert "What the model saw" in receipt
    assert all(message["content"].split("\n")[0] in receipt for message in stub.requests[-1].messages)
    assert '<a href="#turn-1">' in receipt, "what was left out"
    assert f'href="/documents/{number}?start=0&end=44#passage"' in receipt
    assert "/turns/" not in receipt


def test_the_window_counts_the_turns_that_came_along(client: FlaskClient, stub: StubModel) -> None:
    earlier = [{"question": f"Question {n}.", "answer": f"Answer {n}."} for n in range(1, 8)]
    *_, (_, _, data) = ask_temporarily(client, "?html=1", question="Now?", earlier=earlier)
    assert (data["history_trimmed"], data["history"]["turns_total"], data["history"]["turns_kept"]) == (True, 7, 5)
    assert "The model saw 5 of 7 earlier turns" in data["html"]


@pytest.mark.long
@pytest.mark.parametrize("status", [400, 503])
def test_a_failed_model_is_told_offers_nothing_that_needs_an_id_and_leaves_none_of_its_words_in_the_log(
    client: FlaskClient, stub: StubModel, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level("DEBUG", "rag_assistant")
    stub.default = Reply(status=status, body=b'{"error": {"message": "Never ask: why xylophones?"}}')
    *_, (name, _, data) = ask_temporarily(client, "?html=1", question="Why xylophones?")
    assert (name, data["status"], "No answer." in data["html"]) == ("error", "failed", True)
    assert "<form" not in data["html"]
    assert "Never ask: why xylophones?" in str(data)
    assert "xylophones" not in caplog.text


def test_what_does_not_belong_to_it_is_refused(client: FlaskClient) -> None:
    bodies: list[dict[str, Any]] = [{"conversation_id": 1}, {"images": []}, {"earlier": [{"question": "Alone"}]}]
    for body in (*bodies, {"question": " "}):
        refused = client.post("/api/query/temporary", json={"question": "Why?"} | body)
        assert refused.status_code == 422, body


def test_its_answer_ends_with_its_reader(client: FlaskClient, stub: StubModel, services: Services) -> None:
    stub.replies.append(Reply("One two three", hang_at=1))
    with client.post("/api/query/temporary", json={"question": "Why?"}, buffered=False) as stream:
        assert next(iter(stream.response))
        assert services.assistant.running[0] == 1
        (live,) = services._live_turns.all()
    assert live.ended.wait(10)
