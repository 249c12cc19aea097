"""The list of conversations beside the page: grouped, scrolled, searched, and what its menu does."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.holding import Held
from tests.browser.lists import choose, fill, row
from tests.browser.talk import ask, ask_many
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

ROWS = "#conversations .conversation"


def test_the_list_grows_with_scrolling_and_lets_go_of_what_is_far_away(page: Page, server: ServerProcess) -> None:
    fill(server, 10_000)
    page.goto("/")
    expect(page.locator(ROWS)).to_have_count(50)
    box = page.locator("#conversations")
    for number in range(100, 1001, 50):
        box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
        expect(row(page, f"Talk {number}")).to_be_attached()
    # What is far above has left its height and nothing else; the first part stays.
    expect(row(page, "Talk 120")).to_have_count(0)
    assert box.evaluate("box => box.querySelectorAll('.conversation').length") < 600
    assert box.evaluate("box => box.scrollHeight") > 20_000
    box.evaluate("box => { box.scrollTop = 0; }")
    expect(row(page, "Talk 1")).to_be_visible()
    # What one comes back to is drawn again.
    box.evaluate("box => { box.scrollTop = box.querySelectorAll('.list-part')[1].offsetTop; }")
    expect(row(page, "Talk 60")).to_be_attached()
    headings = page.locator("#conversations h2:not(.visually-hidden)").all_inner_texts()
    assert len(headings) == len(set(headings))


def test_a_new_conversation_comes_into_a_list_that_was_scrolled(page: Page, server: ServerProcess) -> None:
    fill(server, 130)
    page.goto("/")
    for number in (100, 130):
        page.locator("#conversations").evaluate("box => { box.scrollTop = box.scrollHeight; }")
        expect(row(page, f"Talk {number}")).to_be_attached()
    ask(page, "A new one", 1)
    expect(row(page, "A new one")).to_be_attached()
    expect(row(page, "A new one").locator("a")).to_have_attribute("aria-current", "page")
    expect(page.locator(ROWS)).to_have_count(131)


def test_an_empty_list_of_conversations_shows_nothing(page: Page) -> None:
    page.goto("/")
    expect(page.locator("#conversations .list-part")).to_have_css("height", "0px")


def test_a_conversation_is_pinned_and_unpinned(page: Page, server: ServerProcess) -> None:
    fill(server, 5)
    page.goto("/")
    choose(page, "Talk 4", "Pin")
    expect(page.locator("#conversations h2").first).to_have_text("Pinned")
    expect(page.locator("#conversations .title")).to_have_text(["Talk 4", "Talk 1", "Talk 2", "Talk 3", "Talk 5"])
    choose(page, "Talk 4", "Unpin")
    expect(page.locator("#conversations .title")).to_have_text([f"Talk {n}" for n in range(1, 6)])


def test_a_conversation_is_deleted_at_once_and_brought_back(page: Page, server: ServerProcess) -> None:
    fill(server, 3)
    page.goto("/")
    choose(page, "Talk 2", "Delete")
    expect(row(page, "Talk 2")).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("“Talk 2” deleted.")
    assert server.call("GET", "/api/conversations/2")[0] == 404
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "Talk 2")).to_be_visible()
    expect(page.locator(".toast")).to_have_count(0)
    assert server.call("GET", "/api/conversations/2")[0] == 200


@pytest.mark.own_window
def test_undo_waits_ten_seconds_and_longer_while_somebody_reaches_for_it(page: Page, server: ServerProcess) -> None:
    fill(server, 3)
    page.clock.install()
    page.goto("/")
    choose(page, "Talk 2", "Delete")
    toast = page.locator(".toast")
    page.clock.fast_forward(10_000)
    expect(toast).to_be_visible()
    page.get_by_role("button", name="Undo").hover()
    page.clock.fast_forward(60_000)
    expect(toast).to_be_visible()
    page.mouse.move(640, 300)
    page.clock.fast_forward(13_000)
    expect(toast).to_have_count(0)


@pytest.mark.every_time
def test_the_conversation_on_the_page_is_renamed_in_its_place_deleted_and_brought_back(page: Page) -> None:
    ask_many(page, 1)
    choose(page, "Question 1", "Rename")
    box = page.get_by_label("Conversation title")
    expect(box).to_be_focused()
    # A row is drawn within its own edges.
    expect(box).to_have_css("outline-offset", "-2px")
    box.fill("Not this")
    page.keyboard.press("Escape")
    expect(row(page, "Question 1")).to_be_visible()
    choose(page, "Question 1", "Rename")
    box.fill("A better title")
    page.keyboard.press("Enter")
    expect(row(page, "A better title")).to_be_visible()
    expect(page.get_by_role("heading", name="A better title")).to_be_visible()
    expect(row(page, "A better title").locator("a")).to_be_focused()

    choose(page, "A better title", "Delete")
    expect(page).to_have_url(re.compile(r"/\?deleted=1$"))
    note = page.locator(".confirmation")
    expect(note).to_contain_text("“A better title” deleted.")
    edges = [one.bounding_box() for one in (note, page.locator(".welcome").first)]
    assert len({(box["x"], box["width"]) for box in edges if box}) == 1
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#turn-1 .question")).to_have_text("Question 1")
    expect(row(page, "A better title")).to_be_visible()


def test_a_note_of_what_was_deleted_goes_with_the_next_question(page: Page, server: ServerProcess) -> None:
    fill(server, 1)
    server.call("DELETE", "/api/conversations/1")
    page.goto("/?deleted=1")
    note = page.locator(".confirmation")
    expect(note).to_contain_text("“Talk 1” deleted.")
    ask(page, "Another question", 1)
    expect(note).to_have_count(0)


def test_a_conversation_is_exported_from_its_row(page: Page) -> None:
    ask_many(page, 1)
    with page.expect_download() as started:
        choose(page, "Question 1", "Export as JSON")
    assert started.value.suggested_filename == "conversation-1.json"
    with page.expect_download() as started:
        choose(page, "Question 1", "Export as Markdown")
    assert "Question 1" in Path(started.value.path()).read_text()


def test_what_is_typed_is_found_as_it_is_typed_and_opens_at_its_turn(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    answers = ["An answer.", "Seventeen <i>geese</i>.", "Soup."]
    for number, stub.default in enumerate(map(Reply, answers), 1):
        known = {} if number == 1 else {"conversation_id": 1}
        assert server.call("POST", "/api/query", {"question": f"Question {number}"} | known)[0] == 200
    page.goto("/")
    page.get_by_label("Search conversations").press_sequentially("sevent")
    expect(page.locator(".snippet mark")).to_have_text("Seventeen")
    expect(page.locator(".snippet")).to_contain_text("Seventeen <i>geese</i>.")
    expect(row(page, "Question 1").locator(".title")).to_have_css("width", re.compile(r"^\d{3}"))
    expect(page.locator(".found")).to_contain_text("1 result for “sevent”")
    expect(page.get_by_label("Search conversations")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/conversations/1\?q=sevent&at=2#turn-2"))
    expect(page.locator("#turn-2")).to_be_in_viewport()
    page.get_by_label("Search conversations").fill("zebra")
    expect(page.locator(".found")).to_contain_text("No results for “zebra”")
    page.get_by_label("Search conversations").press("Escape")
    expect(page.get_by_label("Search conversations")).to_have_value("")
    expect(row(page, "Question 1")).to_be_visible()


def test_what_was_found_is_renamed_and_deleted_like_everything_else(page: Page, server: ServerProcess) -> None:
    fill(server, 30)
    page.goto("/")
    page.get_by_label("Search conversations").fill("talk 2")
    expect(page.locator(".found")).to_contain_text("12 results for")
    choose(page, "Talk 22", "Rename")
    page.get_by_label("Conversation title").fill("Talk 2 of old")
    page.keyboard.press("Enter")
    expect(row(page, "Talk 2 of old")).to_be_visible()
    choose(page, "Talk 2", "Delete")
    expect(row(page, "Talk 2")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "Talk 2")).to_be_visible()
    expect(page.locator(ROWS)).to_have_count(12)


def test_a_title_half_written_is_not_kept_when_the_list_makes_room_for_what_was_found(
    page: Page, server: ServerProcess
) -> None:
    fill(server, 3)
    page.goto("/")
    found = Held(page, "**/*q=talk*")
    page.get_by_label("Search conversations").fill("talk")
    expect(row(page, "Talk 2")).to_be_visible()
    assert found.route.request.method == "GET"
    choose(page, "Talk 2", "Rename")
    page.get_by_label("Conversation title").fill("Half a ti")
    found.route.continue_()
    expect(page.locator(".found")).to_contain_text("3 results for “talk”")
    expect(row(page, "Talk 2")).to_be_visible()
    assert [one["title"] for one in server.call("GET", "/api/conversations")[1]["conversations"]].count("Talk 2") == 1


def test_a_branch_is_marked_as_one(page: Page, server: ServerProcess) -> None:
    fill(server, 1, branched_from={"conversation_id": 9, "turn": 3})
    page.goto("/")
    expect(row(page, "Talk 1").get_by_title("Branched from turn 3")).to_be_visible()
    expect(page.get_by_role("link", name="Branched from turn 3: Talk 1")).to_be_visible()
