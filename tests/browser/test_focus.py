"""Nobody is taken away from where they are, whatever is drawn anew meanwhile."""

from playwright.sync_api import Page, expect

from tests.browser.talk import ask_many, options
from tests.testkit.stub_model import Reply, StubModel

SLOWLY = Reply("word " * 20, seconds_between=0.1)


def test_whoever_is_in_a_turn_is_still_in_it_when_it_is_drawn_anew(page: Page, stub: StubModel) -> None:
    ask_many(page, 1)
    stub.default = SLOWLY
    page.locator("#turn-1").get_by_role("button", name="Regenerate").press("Enter")
    expect(page.locator("#turn-1.running")).to_be_focused()
    expect(page.locator("#turn-1.completed")).to_be_focused()


def test_a_control_that_is_drawn_anew_keeps_the_focus(page: Page) -> None:
    ask_many(page, 1)
    seen = page.locator("#turn-1").get_by_role("link", name="What the model saw")
    seen.focus()
    page.evaluate("document.getElementById('turn-1').dataset.marks = 'old'")
    page.evaluate("document.getElementById('transcript').dataset.tag = 'old'")
    expect(page.locator("#turn-1[data-marks=old]")).to_have_count(0)
    expect(seen).to_be_focused()


def test_escape_closes_one_thing_at_a_time(page: Page) -> None:
    ask_many(page, 1)
    page.get_by_role("link", name="What the model saw").click()
    expect(page.locator("#drawer")).to_be_visible()
    page.locator("#window > summary").click()
    page.keyboard.press("Escape")
    expect(page.locator("#window")).not_to_have_attribute("open", "")
    expect(page.locator("#drawer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()


def test_escape_that_ends_the_writing_of_a_character_closes_nothing(page: Page) -> None:
    ask_many(page, 1)
    title = options(page).get_by_label("Title")
    title.focus()
    compose = (
        "one => one.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', isComposing: true, bubbles: true}))"
    )
    title.evaluate(compose)
    expect(page.locator("#options")).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    page.locator("#turn-1").get_by_role("link", name="Edit the question").click()
    box = page.locator(".edit-question textarea")
    box.evaluate(compose)
    expect(box).to_be_visible()
