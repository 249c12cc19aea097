"""A transcript of 2,000 turns: the newest are there at once, the others come as one scrolls up to them."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.lists import lengthen
from tests.browser.talk import ask
from tests.testkit.server_process import ServerProcess

TURNS = 2_000


@pytest.fixture
def long(server: ServerProcess) -> None:
    lengthen(server, TURNS)


@pytest.mark.usefixtures("long")
def test_earlier_turns_come_as_one_scrolls_and_what_is_read_stays_in_its_place(page: Page) -> None:
    page.goto("/conversations/1")
    expect(page.locator("#turn-2000")).to_be_in_viewport()
    expect(page.locator(".turn")).to_have_count(20)
    page.locator("#main").evaluate("main => { main.scrollTop = 300; }")
    expect(page.locator("#turn-1961")).to_be_attached()
    expect(page.locator("#turn-1981")).to_be_in_viewport()
    for _ in range(3):
        page.locator("#main").evaluate("main => { main.scrollTop = 200; }")
        page.wait_for_function("count => document.querySelectorAll('.turn').length > count", arg=40)
    numbers = page.locator(".turn").evaluate_all("all => all.map(one => Number(one.dataset.turn))")
    assert numbers == list(range(numbers[0], TURNS + 1))
    expect(page.locator("#turn-1941 .question")).to_have_text("Question 1941")
    ask(page, "The next one", 2001)
    expect(page.locator("#turn-2001")).to_be_in_viewport()


@pytest.mark.parametrize("turns", [100, pytest.param(TURNS, marks=pytest.mark.long)])
def test_an_address_with_a_turn_far_back_leads_to_it(page: Page, server: ServerProcess, turns: int) -> None:
    lengthen(server, turns)
    for turn in (turns * 35 // 100, turns - 1):
        page.goto(f"/conversations/1#turn-{turn}")
        expect(page.locator(f"#turn-{turn}")).to_be_in_viewport()
    assert "at=" not in page.url


@pytest.mark.usefixtures("long")
def test_earlier_turns_are_pages_without_scripts(chromium_without_scripts: Browser, server: ServerProcess) -> None:
    page = chromium_without_scripts.new_context(base_url=server.url).new_page()
    page.goto("/conversations/1")
    page.get_by_role("link", name="Earlier turns").click()
    expect(page.locator(".turn").last.locator(".question")).to_have_text("Question 1980")
