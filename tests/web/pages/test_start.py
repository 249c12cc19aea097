"""The start page, by what the library holds."""

import re
import threading
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, event, update

from rag_assistant.services import Services
from rag_assistant.storage.tables import documents
from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask, upload

LEAVE = "You get thirty days a year, and you take them when you like.\n"


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


def test_the_start_page_lists_what_came_in_last_with_a_summary(client: FlaskClient) -> None:
    for name in ("oldest.csv", "gulls.csv", "terns.csv", "newest.csv"):
        upload(client, f"bird,number\n{name},17\n", name)
    page = client.get("/").text
    recent = page[page.index('class="recent"') :]
    assert re.findall(r">(\w+\.(?:csv|md))</a>", recent) == ["newest.csv", "terns.csv", "gulls.csv"]
    assert recent.count('value="Summarise this document."') == 3
    assert "chip-button" not in page
    assert "guide" not in page


@pytest.mark.long
def test_the_start_page_costs_no_more_queries_with_many_documents(client: FlaskClient) -> None:
    upload(client, LEAVE, "leave.md")
    with_one = len(selects_of(client))
    for number in range(3):
        upload(client, LEAVE.replace("days", f"days in {number}"), f"leave {number}.md")
    assert len(selects_of(client)) == with_one


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
