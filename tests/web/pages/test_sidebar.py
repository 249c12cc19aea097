"""The list of conversations: its pages, what is listed, and what was pinned."""

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, update

from rag_assistant.services import Services
from rag_assistant.storage.conversations.conversations import MAX_PINNED
from rag_assistant.storage.tables import conversations
from tests.testkit.statements import listening
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, post, until
from tests.web.pages.conversation_rows import fill, older, rows


def test_the_first_view_of_ten_thousand_conversations_is_small(client: FlaskClient, services: Services) -> None:
    fill(services, 10_000)
    page = client.get("/").text
    assert len(rows(page)) == 50
    assert len(page.encode()) < 90_000


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_all_conversations_are_reached_page_by_page_each_once(
    client: FlaskClient, services: Services, count: int
) -> None:
    fill(services, count)
    seen: list[int] = []
    address: str | None = "/conversations"
    while address is not None:
        part = client.get(f"{address}{'&' if '?' in address else '?'}part=1").text
        assert len(rows(part)) <= 50
        assert len(part.encode()) < 60_000
        seen += rows(part)
        address = older(part)
    assert seen == list(range(1, count + 1))


@pytest.mark.long
def test_a_conversation_that_is_used_meanwhile_does_not_break_the_paging(
    client: FlaskClient, services: Services
) -> None:
    fill(services, 120)
    address = older(client.get("/conversations").text)
    assert address is not None
    # The last one of the first page, and one that is still to come, go to the top.
    for moved in (50, 60):
        ask(client, conversation_id=moved)
    assert rows(client.get(f"{address}&part=1").text) == [n for n in range(51, 102) if n != 60]


def test_a_part_can_be_drawn_once_more_with_what_came_into_it(client: FlaskClient, services: Services) -> None:
    fill(services, 120)
    first = client.get("/conversations?part=1").text
    address = older(first)
    assert address is not None
    place = address.partition("from=")[2]
    new = ask(client)["conversation_id"]
    again = client.get(f"/conversations?part=1&until={place}").text
    assert rows(again) == [new, *range(1, 51)]
    assert older(again) == address


@pytest.mark.long
def test_what_a_program_made_is_listed_once_it_has_an_answer(client: FlaskClient, stub: StubModel) -> None:
    empty = client.post("/api/conversations", json={"title": "Nothing yet"}).json["conversation_id"]
    stub.replies.append(Reply(status=400))
    failed = client.post("/api/query", json={"question": "Will it fail?"}).json["conversation_id"]
    assert rows(client.get("/").text) == []
    assert [one["conversation_id"] for one in client.get("/api/conversations").json["conversations"]] == [failed, empty]
    assert rows(client.get("/?q=fail").text) == [failed]
    for hidden in (empty, failed):
        assert rows(client.get(f"/conversations/{hidden}").text) == [hidden], "the open one is listed"
    ask(client, conversation_id=empty)
    client.patch(f"/api/conversations/{failed}", json={"pinned": True})
    assert rows(client.get("/").text) == [failed, empty]


def test_what_a_person_asked_is_listed_even_if_it_failed(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=400)
    post(client, "/ask", question="Typed without scripts?")
    client.post("/api/query/stream?html=1", json={"question": "Typed on the page?"}, buffered=True)
    made = client.post("/api/conversations").json["conversation_id"]
    assert sorted(rows(client.get("/").text)) == [1, 2]
    post(client, "/ask", question="Typed there?", conversation_id=made)
    assert sorted(rows(client.get("/").text)) == [1, 2, made]


@pytest.mark.long
def test_a_branch_is_listed_where_it_has_something_to_show(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client)
    second = ask(client, conversation_id=first["conversation_id"])
    stub.default = Reply(status=400)
    branches = [
        client.post("/api/query", json={"question": "Or?", "edits_turn": turn["turn_id"]}).json["conversation_id"]
        for turn in (first, second)
    ]
    assert rows(client.get("/").text) == [branches[1], first["conversation_id"]]


@pytest.mark.long
def test_the_newest_version_of_an_edited_question_stands_for_all_of_them(client: FlaskClient) -> None:
    ask(client, "One")
    second = ask(client, "Two", conversation_id=1)
    post(client, "/ask", question="Two, better", edits_turn=str(second["turn_id"]))
    edited = client.get("/api/conversations/2/turns").json["turns"][1]
    until(lambda: client.get(f"/api/turns/{edited['turn_id']}").json["status"] == "completed")
    post(client, "/ask", question="Two, best", edits_turn=str(edited["turn_id"]))
    for conversation, position in ((1, "1 / 3"), (2, "2 / 3"), (3, "3 / 3")):
        assert f'<span class="position">{position}</span>' in client.get(f"/conversations/{conversation}").text
    page = client.get("/").text
    assert (rows(page), page.count('dir="auto">One<')) == ([3], 1)
    client.delete("/api/conversations/3")
    assert rows(client.get("/").text) == [2]
    assert '<span class="position">2 / 2</span>' in client.get("/conversations/2").text


def test_the_open_conversation_stands_in_its_place_in_every_part(client: FlaskClient, services: Services) -> None:
    fill(services, 120)
    with services.database.write() as connection:
        hidden = conversations.c.id.in_((10, 60, 61))
        connection.execute(update(conversations).where(hidden).values(listed=False))
    first = client.get("/conversations?part=1&open=60").text
    assert rows(first) == [n for n in range(1, 52) if n != 10]
    address = older(first)
    assert address is not None
    behind = [n for n in range(52, 120) if n not in (60, 61)]
    assert rows(client.get(f"{address}&part=1").text) == behind[:50]
    assert rows(client.get(f"{address}&part=1&open=60").text) == sorted([*behind[:49], 60])
    assert rows(client.get("/conversations?part=1&open=10").text) == list(range(1, 51))
    assert rows(client.get("/conversations?part=1&open=999").text)[:2] == [1, 2]


def test_the_list_reads_no_row_that_it_does_not_show(services: Services) -> None:
    fill(services, 200, listed=False)
    statements: list[tuple[str, Any]] = []
    here = threading.current_thread()  # The queues of the library have threads of their own.

    def executed(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if threading.current_thread() is here and statement.startswith("SELECT"):
            statements.append((statement, parameters))

    with listening(Engine, "before_cursor_execute", executed):
        assert services.conversations.entries(51, pinned=False) == []
    ((statement, parameters),) = statements
    with services.database.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    assert [row[-1] for row in plan] == [
        "SEARCH conversations USING INDEX ix_conversations_listed (listed=? AND deleted_at=?)",
        "CORRELATED SCALAR SUBQUERY 1",  # Where a branch that is shown comes from.
        "SEARCH origins USING INTEGER PRIMARY KEY (rowid=?)",
    ]


def test_the_list_is_read_without_scripts(client: FlaskClient, services: Services) -> None:
    fill(services, 60)
    address = older(client.get("/").text)
    assert address is not None
    second = client.get(address).text
    assert "<h1>Conversations</h1>" in second
    assert rows(second.partition("<h1>")[2]) == list(range(51, 61))


def test_a_place_that_is_none_is_refused(client: FlaskClient) -> None:
    for address in (
        "/conversations?from=x",
        "/conversations?until=5",
        "/deleted?from=1-",
        "/api/conversations?cursor=7",
    ):
        assert client.get(address).status_code == 422, address


def test_days_begin_where_the_reader_lives(client: FlaskClient, services: Services) -> None:
    fill(services, 30, timedelta(hours=1))
    headings = {}
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Niue", "No/Where"):
        client.set_cookie("zone", zone)
        page = client.get("/").text
        today = page.partition("<h2>Yesterday</h2>")[0].partition("<h2>Today</h2>")[2]
        headings[zone] = len(rows(today))
    # 25 hours lie between the two islands; every other zone is in between.
    assert headings["Pacific/Kiritimati"] != headings["Pacific/Niue"]
    assert headings["No/Where"] == headings["UTC"]


def test_pinned_conversations_stand_first(client: FlaskClient, services: Services) -> None:
    fill(services, 60, timedelta(milliseconds=1))
    assert client.patch("/api/conversations/55", json={"pinned": True}).json["pinned"] is True
    page = client.get("/").text
    assert rows(page) == [55, *range(1, 51)]
    headings = re.findall(r"<h2>(Pinned|Today|Yesterday|Previous \d+ days)</h2>", page)
    assert headings[0] == "Pinned"
    assert headings[1:] == [one for one in headings if one != "Pinned"] != []
    address = older(page)
    assert address is not None
    assert rows(client.get(f"{address}&part=1").text) == [51, 52, 53, 54, 56, 57, 58, 59, 60]
    listed = client.get("/api/conversations?pinned=1").json["conversations"]
    assert [one["conversation_id"] for one in listed] == [55]
    assert len(client.get("/api/conversations?pinned=0&limit=200").json["conversations"]) == 59
    assert post(client, "/conversations/55/change", pinned="false") == (303, "/conversations/55")
    assert rows(client.get("/").text) == list(range(1, 51))


def test_no_more_can_be_pinned_than_are_shown(client: FlaskClient, services: Services) -> None:
    fill(services, MAX_PINNED, pinned=True)
    fill(services, 1)
    refused = client.patch(f"/api/conversations/{MAX_PINNED + 1}", json={"pinned": True})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "TooManyPinned")
    assert client.patch("/api/conversations/1", json={"pinned": True}).status_code == 200
    for wrong in ("yes", 1):
        assert client.patch("/api/conversations/1", json={"pinned": wrong}).status_code == 422


def test_what_branched_off_says_where(client: FlaskClient, services: Services) -> None:
    fill(services, 1, branched_from={"conversation_id": 9, "turn": 3})
    assert "Branched from turn 3" in client.get("/").text
    listed = client.get("/api/conversations").json["conversations"]
    assert listed[0]["branched_from"] == {"conversation_id": 9, "turn": 3}


@pytest.mark.long
def test_a_version_that_stands_for_all_is_no_branch_but_one_made_over_the_api_is(client: FlaskClient) -> None:
    first = ask(client, "First?")
    programs = ask(client, "Otherwise?", edits_turn=first["turn_id"])
    page = f"/conversations/{programs['conversation_id']}"
    assert client.get(page).text.count("Branched from") == 3, "over the conversation, and on its icon in the list"
    status, place = post(client, "/ask", question="Or so?", edits_turn=str(programs["turn_id"]))
    assert status == 303
    shown = client.get(place).text
    assert ("Versions of this question" in shown, "Branched from" in shown) == (True, False)
