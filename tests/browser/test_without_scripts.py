"""Everything that matters works as plain forms, in a browser that runs no scripts.

That each route takes its form is shown in tests/web every time, without a browser.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


@pytest.fixture
def plain(chromium_without_scripts: Browser, server: ServerProcess) -> Iterator[Page]:
    context = chromium_without_scripts.new_context(base_url=server.url)
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


def say(page: Page, text: str) -> None:
    page.get_by_label("Your question").fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()


def test_asking_reading_a_source_and_going_on(plain: Page, stub: StubModel) -> None:
    stub.default = Reply("Five [1].")
    plain.goto("/")
    plain.get_by_role("button", name="How many earlier turns does the model see?").click()
    expect(plain).to_have_url(re.compile(r"/conversations/1#turn-1"))
    expect(plain.locator("#turn-1.completed .answer")).to_contain_text("Five [1].")
    plain.locator("#turn-1 .sources a").first.click()
    expect(plain.get_by_text("How many earlier turns the model sees").first).to_be_visible()
    plain.go_back()
    say(plain, "And then?")
    expect(plain.locator("#turn-2.completed .answer")).to_contain_text("Five [1].")


def test_an_answer_that_takes_its_time_comes_by_itself(plain: Page, stub: StubModel) -> None:
    stub.default = Reply("It took a while.", seconds_before=2.5)
    plain.goto("/")
    say(plain, "A slow one?")
    expect(plain.locator("#turn-1.running")).to_be_visible()
    # The page asks for itself anew until the answer is there.
    expect(plain.locator("#turn-1.completed .answer")).to_have_text("It took a while.")


def test_the_window_the_settings_and_commands(plain: Page, server: ServerProcess) -> None:
    for number in range(1, 4):
        known = {} if number == 1 else {"conversation_id": 1}
        server.call("POST", "/api/query", {"question": f"Question {number}"} | known)
    plain.goto("/conversations/1")
    plain.locator("#window summary").click()
    plain.get_by_label("How many earlier turns to send").fill("2")
    plain.get_by_role("button", name="Apply", exact=True).click()
    expect(plain.locator(".horizon .sentence")).to_have_text("2 of 3 earlier turns (1 over the turn limit)")
    plain.locator(".gauge button").click()
    expect(plain.locator(".figures")).to_contain_text("earlier turns")
    plain.goto("/settings")
    plain.get_by_text("All settings", exact=True).click()
    plain.get_by_label("Search settings").fill("history turns")
    plain.get_by_role("button", name="Search").last.click()
    expect(plain.locator("#setting-max_history_turns")).to_be_visible()
    expect(plain.locator("#setting-port")).to_have_count(0)
    plain.goto("/conversations/1")
    plain.locator("#window summary").click()
    expect(plain.get_by_label("How many earlier turns to send")).to_have_value("2")
    plain.get_by_label("How many earlier turns to send").fill("")
    plain.get_by_role("button", name="Apply", exact=True).click()
    expect(plain).to_have_url(re.compile(r"/conversations/1$"))
    expect(plain.locator("#window summary")).to_have_text("Memory: last 5 turns")
    say(plain, "/history")
    expect(plain.locator(".result")).to_contain_text("3 turns.")
    expect(plain.locator(".result .dismiss")).to_be_hidden()
