"""The start page: what it offers to ask, by what the library holds."""

import html
import re
import threading
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, event, update

from rag_assistant.services import Services
from rag_assistant.storage.tables import documents
from rag_assistant.web.pages import conversation
from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask, upload

LEAVE = (
    "## How many days off do I get?\n\nYou get thirty days a year, and you take them when you like.\n\n"
    "## Book a meeting room\n\nThe calendar of the office has all rooms; pick one and it is yours.\n"
)


def offered(client: FlaskClient) -> list[str]:
    """Return the questions that the start page offers."""
    found = re.findall(r'class="chip-button"[^>]* value="([^"]+)"', client.get("/").text)
    return [html.unescape(one) for one in found]


def selects_of(client: FlaskClient) -> list[str]:
    """Return the queries of one start page."""
    statements: list[str] = []
    here = threading.current_thread()

    def note(_connection: object, _cursor: object, statement: str, *_rest: Any) -> None:
        if statement.startswith("SELECT") and threading.current_thread() is here:
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        client.get("/")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return statements


def test_questions_that_the_documents_answer_are_offered_one_of_each_first(client: FlaskClient) -> None:
    upload(client, LEAVE, "leave.md")
    assert offered(client) == ["How many days off do I get?", "How do I book a meeting room?"]
    goose = "The weight of geese is about 4 kilograms. It has a long neck, a loud voice and many feathers."
    upload(client, goose, "docx_lists.txt")
    assert offered(client) == [
        "What is the weight of geese?",
        "How many days off do I get?",
        "How do I book a meeting room?",
    ]


def test_the_start_page_lists_what_came_in_last_with_a_summary(client: FlaskClient) -> None:
    for name in ("oldest.csv", "gulls.csv", "terns.csv", "newest.csv"):
        upload(client, f"bird,number\n{name},17\n", name)
    page = client.get("/").text
    recent = page[page.index('class="recent"') :]
    assert re.findall(r">(\w+\.(?:csv|md))</a>", recent) == ["newest.csv", "terns.csv", "gulls.csv"]
    assert recent.count('value="Summarise this document."') == 3
    assert offered(client) == [], "tables give no question"
    assert "guide" not in page


def test_a_heading_of_a_hostile_document_stays_text(client: FlaskClient) -> None:
    heading = "What is <img src=x onerror=alert(1)> for?"
    upload(client, f"## {heading}\n\n" + "The answer to this is in the text of the document, and not in the page.\n")
    assert "<img src=x" not in client.get("/").text
    assert offered(client) in ([heading], [])


def test_the_start_page_costs_no_more_queries_with_many_documents(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(client, LEAVE, "leave.md")
    with_one = len(selects_of(client))
    for number in range(3):
        upload(client, LEAVE.replace("days", f"days in {number}"), f"leave {number}.md")
    statements = selects_of(client)
    assert len(statements) == with_one
    assert sum("document_texts" in one for one in statements) == 1
    monkeypatch.setattr(conversation, "CHARS_READ", 20)
    assert offered(client) == [], "only the beginning of each text is read"


def test_a_document_is_named_before_it_is_read_and_offers_nothing_until_then(
    client: FlaskClient, services: Services
) -> None:
    number = upload(client, LEAVE, "leave.md")["document_id"]
    with services.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == number).values(state="queued", chunks=0))
    page = client.get("/").text
    recent = page[page.index('<div class="recent">') :]
    assert "Recently added" in recent
    assert '<span class="hint">queued</span>' in recent
    assert 'aria-describedby="recent-' not in recent, "no button"


def test_with_an_empty_library_an_answer_says_that_nothing_was_searched(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client, "When does the ferry leave?")
    drawn = client.get(f"/turns/{turn['turn_id']}").text
    assert (turn["support"], "Your library is empty; nothing was searched." in drawn) == ("not_searched", True)
    assert "documents" not in drawn, "no word about what documents say"
    upload(client, "The ferry leaves at nine.")
    assert "No documents were searched." in client.get(f"/turns/{turn['turn_id']}").text
