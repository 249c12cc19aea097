"""The start page: what it offers to ask, by what the library holds."""

import html
import re
import threading
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, event

from rag_assistant.web.pages import conversation
from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask, upload

LEAVE = (
    "## How many days off do I get?\n\nYou get thirty days a year, and you take them when you like.\n\n"
    "## Book a meeting room\n\nThe calendar of the office has all rooms; pick one and it is yours.\n"
)


def offered(client: FlaskClient) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'name="question" value="([^"]+)"', client.get("/").text)]


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
    page = client.get("/").text
    assert "Try asking:" in page
    assert "docx_lists" not in page[page.index('class="welcome"') :]


def test_documents_that_give_no_question_leave_a_plain_prompt(client: FlaskClient) -> None:
    upload(client, "bird,number\ngoose,17\n", "birds.csv")
    page = client.get("/").text
    welcome = page[page.index('class="welcome"') :]
    assert offered(client) == []
    assert "Type a question below." in welcome
    assert "birds.csv" not in welcome
    assert "Try asking" not in welcome


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


def test_with_an_empty_library_an_answer_says_that_nothing_was_searched(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client, "When does the ferry leave?")
    drawn = client.get(f"/turns/{turn['turn_id']}").text
    assert (turn["support"], "Your library is empty; nothing was searched." in drawn) == ("not_searched", True)
    assert "documents" not in drawn, "no word about what documents say"
    upload(client, "The ferry leaves at nine.")
    assert "No documents were searched." in client.get(f"/turns/{turn['turn_id']}").text
