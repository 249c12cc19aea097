"""The list of conversations: its pages, what was pinned, found or put away, and the look of the pages."""

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, event, insert, update

from rag_assistant.storage.conversations.conversations import MAX_PINNED
from rag_assistant.storage.tables import conversations
from rag_assistant.web.services import Services
from testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post

ROW = re.compile(r'data-conversation="(\d+)"')
OLDER = re.compile(r'class="older" href="([^"]+)"')


def fill(services: Services, count: int, step: timedelta = timedelta(hours=5), **more: object) -> None:
    """Put empty conversations into the list, the first the latest used."""
    now = datetime.now(UTC)
    rows = [
        {
            "title": f"Conversation {n} about something with a name of usual length",
            "created_at": now - n * step,
            "updated_at": now - n * step,
            "overrides": {},
            "turns": 0,
            "visible_turns": 0,
            "visible_messages": 0,
        }
        | more
        for n in range(1, count + 1)
    ]
    with services.database.write() as connection:
        connection.execute(insert(conversations), rows)


def rows(page: str) -> list[int]:
    """Return the conversations that a page lists."""
    return [int(number) for number in ROW.findall(page)]


def older(page: str) -> str | None:
    """Return where the list goes on."""
    found = OLDER.search(page)
    return found[1].replace("&amp;", "&") if found else None


def test_the_first_view_of_ten_thousand_conversations_is_small(client: FlaskClient, services: Services) -> None:
    fill(services, 10_000)
    page = client.get("/").text
    assert len(rows(page)) == 50
    assert len(page.encode()) < 90_000


def test_ten_thousand_conversations_are_reached_page_by_page_each_once(client: FlaskClient, services: Services) -> None:
    fill(services, 10_000)
    seen: list[int] = []
    address: str | None = "/conversations"
    while address is not None:
        part = client.get(f"{address}{'&' if '?' in address else '?'}part=1").text
        assert len(rows(part)) <= 50
        assert len(part.encode()) < 60_000
        seen += rows(part)
        address = older(part)
    assert seen == list(range(1, 10_001))


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


# --- conversations that programs made


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


def test_a_branch_is_listed_where_it_has_something_to_show(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client)
    second = ask(client, conversation_id=first["conversation_id"])
    stub.default = Reply(status=400)
    branches = [
        client.post("/api/query", json={"question": "Or?", "edits_turn": turn["turn_id"]}).json["conversation_id"]
        for turn in (first, second)
    ]
    assert rows(client.get("/").text) == [branches[1], first["conversation_id"]]


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

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        if threading.current_thread() is here:
            statements.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert services.conversations.page(51, pinned=False, listed=True) == []
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    statement, parameters = next(one for one in statements if one[0].startswith("SELECT"))
    with services.database.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    assert [row[-1] for row in plan] == [
        "SEARCH conversations USING INDEX ix_conversations_listed (listed=? AND deleted_at=?)"
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
        "/api/conversations?before=7",
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
    assert post(client, "/conversations/55/pin", pinned="false") == (303, "/conversations/55")
    assert rows(client.get("/").text) == list(range(1, 51))


def test_no_more_can_be_pinned_than_are_shown(client: FlaskClient, services: Services) -> None:
    fill(services, MAX_PINNED, pinned=True)
    fill(services, 1)
    refused = client.patch(f"/api/conversations/{MAX_PINNED + 1}", json={"pinned": True})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "TooManyPinned")
    assert client.patch("/api/conversations/1", json={"pinned": True}).status_code == 200
    for wrong in ("yes", 1):
        assert client.patch("/api/conversations/1", json={"pinned": wrong}).status_code == 422


def test_a_search_shows_the_words_and_leads_to_the_turn(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "How many birds?")["conversation_id"]
    stub.default = Reply("Seventeen <b>geese</b> & a swan.")
    ask(client, "And on the pond?", conversation_id=conversation)
    page = client.get("/?q=goose geese").text
    assert f'href="/conversations/{conversation}?q=goose+geese&amp;at=2#turn-2"' in page
    assert "Seventeen &lt;b&gt;<mark>geese</mark>&lt;/b&gt; &amp; a swan." in page
    assert "1 result for" in page


def test_a_search_of_documents_is_no_search_of_conversations(client: FlaskClient) -> None:
    conversation = ask(client, "How many birds?")["conversation_id"]
    page = client.get("/documents?q=zebra").text
    assert rows(page) == [conversation]
    assert page.count('value="zebra"') == 1, "the search box of the documents alone"


def test_a_word_that_is_not_typed_to_its_end_is_found(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("Seventeen.")
    ask(client, "How many?")
    assert "<mark>Seventeen</mark>" in client.get("/conversations?part=1&q=sevent").text
    assert rows(client.get('/conversations?part=1&q=sev"*').text) == [1]
    assert rows(client.get("/conversations?part=1&q=***").text) == []


def test_a_title_is_found_whatever_its_capitals(client: FlaskClient, services: Services) -> None:
    fill(services, 3)
    client.patch("/api/conversations/2", json={"title": "Über 100% Ökostrom_"})
    for words in ("über", "ÖKOSTROM", "öko 100"):
        assert rows(client.get("/conversations", query_string={"part": 1, "q": words}).text) == [2], words
    client.delete("/api/conversations/2")
    assert rows(client.get("/conversations?part=1&q=über").text) == []


def test_a_conversation_opens_around_a_turn(client: FlaskClient) -> None:
    conversation = ask(client, "Question 1")["conversation_id"]
    for n in range(2, 42):
        ask(client, f"Question {n}", conversation_id=conversation)
    shown = re.compile(r'id="turn-(\d+)"')
    path = f"/conversations/{conversation}"
    around = client.get(f"{path}?at=10").text
    assert [int(n) for n in shown.findall(around)] == list(range(1, 25))
    later = re.search(r'href="([^"]+)">Later turns', around)
    assert later is not None
    assert later[1].endswith("#turn-25")
    rest = client.get(later[1]).text
    assert [int(n) for n in shown.findall(rest)] == list(range(12, 42))
    assert "Earlier turns" in rest
    assert "Later turns" not in rest
    assert client.get(f"{path}?at=0").status_code == 422
    assert [int(n) for n in shown.findall(client.get(f"{path}?at=99999").text)] == list(range(12, 42))


def test_deleted_conversations_are_listed_restored_and_erased(client: FlaskClient, services: Services) -> None:
    fill(services, 120)
    assert "No deleted conversations." in client.get("/deleted").text
    for number in range(1, 61):
        client.delete(f"/api/conversations/{number}")
    titled = re.compile(r'aria-label="Restore Conversation (\d+) ')
    page = client.get("/deleted").text
    assert [int(n) for n in titled.findall(page)] == list(range(60, 10, -1))
    earlier = re.search(r'href="(/deleted\?from=[^"]+)"', page)
    assert earlier is not None
    assert [int(n) for n in titled.findall(client.get(earlier[1]).text)] == list(range(10, 0, -1))
    assert post(client, "/conversations/3/restore") == (303, "/conversations/3")
    assert post(client, "/deleted/4/erase") == (303, "/deleted?erased=1")
    assert client.post("/api/conversations/4/restore").status_code == 404
    listed = client.get("/api/conversations?deleted=1&limit=50").json
    assert len(listed["conversations"]) == 50
    assert listed["conversations"][0]["deleted_at"] is not None
    rest = client.get(f"/api/conversations?deleted=1&before={listed['next_before']}").json
    assert [one["conversation_id"] for one in rest["conversations"]] == [10, 9, 8, 7, 6, 5, 2, 1]


def test_the_start_page_names_the_conversation_that_was_deleted_last(client: FlaskClient, services: Services) -> None:
    fill(services, 2)
    client.patch("/api/conversations/1", json={"title": "Geese & ducks"})
    assert post(client, "/conversations/1/delete") == (303, "/?deleted=1")
    assert "“<bdi>Geese &amp; ducks</bdi>” deleted." in client.get("/?deleted=1").text
    client.delete("/api/conversations/2")
    assert "</bdi>” deleted." not in client.get("/?deleted=1").text


def test_a_deleted_conversation_says_so_and_offers_to_restore_it(client: FlaskClient, services: Services) -> None:
    fill(services, 1)
    client.delete("/api/conversations/1")
    shown = client.get("/conversations/1", headers=PAGE)
    assert shown.status_code == 404
    assert "Conversation 1 is in the trash." in shown.text
    assert '<form method="post" action="/conversations/1/restore">' in shown.text
    refused = client.post("/api/query", json={"question": "Why?", "conversation_id": 1})
    assert (refused.status_code, refused.json["error"]["type"]) == (404, "ConversationDeleted")
    assert client.get("/api/conversations/9").json["error"]["type"] == "ConversationNotFound"


def test_what_was_brought_back_meanwhile_is_not_erased(client: FlaskClient, services: Services) -> None:
    fill(services, 1)
    client.delete("/api/conversations/1")
    # Another tab still offers to erase it.
    post(client, "/conversations/1/restore")
    assert client.post("/deleted/1/erase", data={}).status_code == 409
    assert client.get("/api/conversations/1").status_code == 200


def test_what_branched_off_says_where(client: FlaskClient, services: Services) -> None:
    fill(services, 1, branched_from={"conversation_id": 9, "turn": 3})
    assert "Branched from turn 3" in client.get("/").text
    listed = client.get("/api/conversations").json["conversations"]
    assert listed[0]["branched_from"] == {"conversation_id": 9, "turn": 3}


def test_an_error_says_what_kind_it_is_and_leads_home(client: FlaskClient) -> None:
    missing = client.get("/conversations/9", headers=PAGE).text
    assert "<h1>Not found</h1>" in missing
    assert '<a href="/">Go to the start page</a>.</p>' in missing
    refused = client.post("/theme", data={"theme": "pink"}, headers=PAGE).text
    assert "<h1>Something went wrong</h1>" in refused
    assert (
        '<a href="/">Go to the start page</a>. Or go back in your browser: what you typed is still there.</p>'
        in refused
    )


@pytest.mark.parametrize("theme", ["system", "light", "dark"])
def test_a_theme_is_kept_and_drawn_on_every_page(client: FlaskClient, theme: str) -> None:
    response = client.post("/theme", data={"theme": theme}, headers={"Referer": "http://localhost/documents?tag=a"})
    assert (response.status_code, response.headers["Location"]) == (303, "/documents?tag=a")
    for address in ("/", "/documents", "/deleted", "/conversations/9"):
        assert f'data-theme="{theme}"' in client.get(address, headers=PAGE).text, address


def test_a_theme_that_is_none_is_refused_and_a_cookie_with_one_is_ignored(client: FlaskClient) -> None:
    assert client.post("/theme", data={"theme": "pink"}).status_code == 422
    client.set_cookie("theme", '"><script>')
    assert 'data-theme="system"' in client.get("/").text


@pytest.mark.parametrize("referrer", ["http://evil.example/x", "http://localhost//evil.example", "", "nonsense"])
def test_choosing_a_theme_never_leads_to_another_host(client: FlaskClient, referrer: str) -> None:
    response = client.post("/theme", data={"theme": "dark"}, headers={"Referer": referrer})
    assert response.headers["Location"] == "/"


def test_a_folded_sidebar_is_drawn_folded(client: FlaskClient) -> None:
    assert 'data-sidebar="closed"' not in client.get("/").text
    client.set_cookie("sidebar", "closed")
    assert 'data-sidebar="closed"' in client.get("/").text
