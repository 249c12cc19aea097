"""A temporary conversation on the page: its turns are in the page alone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


@pytest.mark.every_time
@pytest.mark.shared
def test_a_temporary_conversation_goes_on_is_stopped_and_is_gone(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    page.goto("/")
    page.get_by_role("link", name="Temporary conversation").click()
    expect(page.get_by_text("Nothing is stored.")).to_be_visible()
    turns = page.locator("#transcript .turn")
    stub.replies.extend([Reply("It is **xylo**."), Reply("One two three", hang_at=1), Reply("Third.")])
    say(page, "What is it?")
    expect(turns.nth(0).locator(".answer strong")).to_have_text("xylo")
    expect(turns.nth(0).get_by_role("button", name="Copy the answer as Markdown")).to_be_visible()
    page.get_by_role("button", name="What the model saw").click()
    drawer = page.get_by_role("complementary", name="Details")
    expect(drawer.locator(".of-question pre")).to_contain_text("What is it?")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    say(page, "And why?")
    expect(turns.nth(1).locator(".answer")).to_have_text("One")
    page.locator("#composer").get_by_role("button", name="Stop").click()
    expect(turns.nth(1).locator(".state")).to_have_text("Stopped.")
    say(page, "And then?")
    expect(turns.nth(2).locator(".answer")).to_have_text("Third.")
    sent = [message["content"] for message in stub.requests[-1].body["messages"] if message["role"] != "system"]
    assert sent[:4] == ["What is it?", "It is **xylo**.", "And why?", "One"]
    say(page, "/compact")
    expect(page.locator("#composer-error")).to_have_text("Commands are for conversations that are stored.")
    assert page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})").count("it?") == 0
    with page.expect_event("dialog") as asked:
        page.reload()
    assert asked.value.type == "beforeunload"
    expect(turns).to_have_count(0)
    expect(page.get_by_label("Your question")).to_have_value("")
    assert server.call("GET", "/api/conversations?q=xylo")[1]["conversations"] == []
