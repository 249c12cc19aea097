"""What goes wrong on the way: refusals, lost answers and answers that come too late leave the page usable."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.holding import Held
from tests.browser.lists import lengthen
from tests.browser.talk import ask, ask_many, mark, say, set_in_module
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

COPIED: Any = "navigator.clipboard.readText()"
DRAG = """kinds => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "page.png"));
    for (const kind of kinds) document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true}));
}"""

WATCH_PIN = """() => {
    window.unpinned = false;
    new MutationObserver(() => {
        window.unpinned ||= !document.querySelector("#turn-1").textContent.includes("Pinned.");
    }).observe(document.getElementById("transcript"), { childList: true });
}"""


def test_an_answer_that_is_gone_is_not_copied_as_a_word(
    context: BrowserContext, page: Page, server: ServerProcess
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask_many(page, 1)
    page.evaluate("navigator.clipboard.writeText('as before')")
    server.call("DELETE", "/api/conversations/1")
    page.get_by_role("button", name="Copy the answer as Markdown").click()
    expect(page.locator(".toast.bad", has_text="Conversation 1 is in the trash.").first).to_be_visible()
    assert page.evaluate(COPIED) == "as before"


@pytest.mark.every_time
@pytest.mark.shared
def test_a_question_that_is_stopped_before_the_server_has_taken_it_is_stopped(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.05)
    page.goto("/")
    held = Held(page, "**/api/query/stream*")
    say(page, "Why?")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".turn .state")).to_have_text("Stopping.")
    held.route.continue_()
    expect(page.locator("#turn-1.stopped")).to_be_visible()


def refuse_to_follow(page: Page, status: int) -> None:
    """Load the page anew; whoever follows a turn is refused from now on."""
    refusal = {"error": {"type": "Forbidden", "message": "You may not see this."}}
    page.route("**/api/turns/*/stream*", lambda route: route.fulfill(status=status, json=refusal))
    page.reload()


@pytest.mark.shared
def test_an_answer_that_may_not_be_followed_says_why(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 60, seconds_between=0.2)  # It ends by itself.
    page.goto("/")
    say(page, "Why?")
    expect(page.locator("#turn-1 .answer")).to_contain_text("word")
    refuse_to_follow(page, 403)
    expect(page.locator("#turn-1 .state")).to_have_text("You may not see this.")


@pytest.mark.shared
def test_an_answer_is_followed_again_when_the_server_has_no_problem_any_more(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.2)
    page.goto("/")
    say(page, "Why?")
    expect(page.locator("#turn-1 .answer")).to_contain_text("word")
    refuse_to_follow(page, 503)
    expect(page.locator("#turn-1 .state")).to_have_text("The server has a problem. Retrying…")
    page.unroute("**/api/turns/*/stream*")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped")).to_be_visible()


@pytest.mark.shared
def test_what_says_that_the_server_is_away_goes_when_it_is_back_and_hides_no_complaint(page: Page) -> None:
    conversation = ask_many(page, 1)
    set_in_module(page, "conversation/sync.js", "interval.seconds = 0.2")
    with page.expect_event("requestfailed", lambda request: request.url.endswith(f"/conversations/{conversation}")):
        page.context.set_offline(True)
    page.get_by_role("link", name="Settings", exact=True).click()
    news, complaint = page.locator(".toast"), page.locator("#composer-error")
    expect(news).to_have_text("The server cannot be reached.")
    page.get_by_label("Your question").fill("one\ntwo\nthree\nfour")
    page.keyboard.press("Enter")
    expect(complaint).to_contain_text("Your question is still here.")
    page.wait_for_function(
        "document.querySelector('.toast').getBoundingClientRect().bottom"
        " <= document.querySelector('.composer-area').getBoundingClientRect().top"
    )
    page.context.set_offline(False)
    expect(news).to_be_hidden(timeout=8_000)
    expect(complaint).to_be_hidden()


def test_an_answer_that_is_followed_again_takes_back_that_there_is_no_connection(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.05)
    page.goto("/")
    page.route("**/api/turns/1/stream*", lambda route: route.abort())
    say(page, "Why?")
    expect(page.locator("#turn-1 .answer")).to_contain_text("word")
    page.reload()
    state, complaint = page.locator("#turn-1 .state"), page.locator("#composer-error")
    expect(state).to_have_text("Connection lost. Reconnecting…")
    page.get_by_label("Your question").fill("Two")
    page.keyboard.press("Enter")
    expect(complaint).to_have_text("Not connected. Your question is still here.")
    page.unroute("**/api/turns/1/stream*")
    expect(state).to_have_text("Writing the answer.")
    expect(complaint).to_be_hidden()
    expect(page.get_by_label("Your question")).to_have_value("Two")
    page.get_by_role("button", name="Stop").click()


def test_the_focus_comes_back_to_a_link_that_was_drawn_anew(page: Page) -> None:
    ask_many(page, 1)
    page.locator("#turn-1 .seen").click()
    expect(page.locator("#drawer .receipt")).to_be_visible()
    page.evaluate("document.querySelector('#turn-1').replaceWith(document.querySelector('#turn-1').cloneNode(true))")
    page.keyboard.press("Escape")
    expect(page.locator("#turn-1 .seen")).to_be_focused()


def test_a_question_that_is_refused_stands_before_what_was_typed_meanwhile(page: Page) -> None:
    ask_many(page, 1)
    held = Held(page, "**/api/query/stream*")
    say(page, "First")
    page.get_by_label("Your question").fill("Second")
    held.route.fulfill(status=503, json={"error": {"type": "Overloaded", "message": "Too much to do."}})
    expect(page.get_by_text("Too much to do.")).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_value("First\n\nSecond")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


@pytest.mark.shared
def test_a_view_of_the_page_that_comes_late_brings_nothing_back(page: Page) -> None:
    address = f"/conversations/{ask_many(page, 1)}"
    pinned = page.locator("#turn-1").get_by_text("Pinned. Sent with every question.")
    before = page.request.get(address).text()
    late = Held(page, f"**{address}")
    with page.expect_request(f"**{address}"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    with page.expect_response(f"**{address}"):
        mark(page.locator("#turn-1"), "Pin")
    expect(pinned).to_be_visible()
    page.evaluate(WATCH_PIN)
    late.route.fulfill(body=before, content_type="text/html")
    ask(page, "And then?", 2)
    assert page.evaluate("window.unpinned") is False


@pytest.mark.shared
def test_what_cannot_be_opened_in_the_drawer_leaves_the_page_as_it_is(page: Page, server: ServerProcess) -> None:
    conversation = ask_many(page, 1)
    page.get_by_label("Your question").fill("Half a tho")
    server.call("DELETE", f"/api/conversations/{conversation}")
    page.get_by_role("link", name="What the model saw").click()
    trashed = page.locator(".toast.bad", has_text=f"Conversation {conversation} is in the trash.")
    expect(trashed.first).to_be_visible()
    page.context.set_offline(True)
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_label("Your question")).to_have_value("Half a tho")
    assert page.url.endswith(f"/conversations/{conversation}")


def test_a_picture_dragged_out_of_the_page_is_no_file_to_add(page: Page) -> None:
    page.goto("/")
    hint = page.locator("#drop-hint")
    page.evaluate(DRAG, ["dragstart", "dragenter"])
    expect(hint).to_be_hidden()
    page.evaluate(DRAG, ["drop", "dragend"])
    expect(page.locator(".uploads")).to_have_count(0)
    page.evaluate(DRAG, ["dragenter"])
    expect(hint).to_be_visible()


def test_later_turns_bring_no_second_way_to_the_earlier_ones(page: Page, server: ServerProcess) -> None:
    lengthen(server, 150)
    page.goto("/conversations/1?at=60#turn-60")
    expect(page.locator("#turn-60")).to_be_in_viewport()
    page.get_by_role("link", name="Later turns").click()
    expect(page.locator("#turn-80")).to_be_attached()
    expect(page.locator(".turn ~ .earlier:not(.later)")).to_have_count(0)
