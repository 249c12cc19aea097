"""What the model sees, as the page shows it and lets a person change it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import ask, ask_many, dimmed, mark, options, say, window
from tests.testkit.stub_model import Reply, StubModel

SUMMARY = "Question 1 had an answer, and so had question 2."


def test_the_buttons_of_the_memory_panel_compact_clear_reset_and_undo(page: Page, stub: StubModel) -> None:
    ask_many(page, 4)
    stub.replies.append(Reply("Four."))
    window(page).get_by_role("button", name="Summarise").click()
    page.get_by_role("dialog").get_by_role("button", name="Summarise").click()
    expect(page.locator("#summary")).to_contain_text("in place of turns 1 and 2")
    window(page).get_by_role("button", name="Undo summary").click()
    expect(page.locator("#summary")).to_have_count(0)
    for action in ("Start over", "Start over with defaults"):
        window(page).get_by_role("button", name=action, exact=True).click()
        expect(page.locator(".horizon .sentence")).to_have_text("0 of 4 earlier turns (4 from before you started over)")
        window(page).get_by_role("button", name="Undo starting over").click()
        expect(page.locator(".horizon")).to_have_count(0)


def test_the_memory_panel_says_what_each_button_does(page: Page) -> None:
    ask_many(page, 1)
    opened = window(page)
    for name, does in (
        ("Summarise", "Send a summary in place of the older turns."),
        ("Start over", "Hide everything so far from the model. You can undo this."),
        ("Start over with defaults", "Also restores this conversation\u2019s default settings."),
    ):
        expect(opened.get_by_role("button", name=name, exact=True)).to_have_accessible_description(does)
        expect(opened.get_by_text(does, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("width", "height", "size"),
    [(640, 400, "100%"), (640, 844, "200%"), pytest.param(1280, 800, "200%", marks=pytest.mark.long)],
)
def test_the_options_fit_and_show_that_there_is_more_below(page: Page, width: int, height: int, size: str) -> None:
    page.set_viewport_size({"width": width, "height": height})
    ask_many(page, 1)
    page.evaluate("size => document.documentElement.style.setProperty('font-size', size)", size)
    panel = options(page).locator("> .panel")
    expect(panel).to_be_in_viewport(ratio=1)
    assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth && panel.scrollHeight > panel.clientHeight")
    expect(panel).to_have_css("background-attachment", "local, scroll, scroll")


@pytest.mark.shared
def test_a_pinned_turn_is_seen_and_an_excluded_one_is_not(page: Page, stub: StubModel) -> None:
    ask_many(page, 3, max_history_turns=1)
    first, third = page.locator("#turn-1"), page.locator("#turn-3")
    mark(first, "Pin")
    expect(first.locator(".mark")).to_have_text("Pinned. Sent with every question.")
    expect(first.locator(".more > summary")).to_be_focused()
    mark(third, "Exclude")
    expect(third.locator(".mark")).to_have_text("Excluded. Not sent to the model.")
    expect(page.locator("#turn-2")).not_to_have_class(re.compile("beyond"))
    assert dimmed(page) == ["turn-3"]
    ask(page, "Question 4", 4)
    asked = [message["content"] for message in stub.requests[-1].messages if message["role"] == "user"]
    assert asked[:-1] == ["Question 1", "Question 2"]


def test_marks_are_taken_away_and_an_erased_turn_leaves_its_place(page: Page) -> None:
    ask_many(page, 2)
    first, second = page.locator("#turn-1"), page.locator("#turn-2")
    mark(first, "Pin")
    mark(second, "Exclude")
    expect(second.locator(".mark")).to_have_text("Excluded. Not sent to the model.")
    mark(second, "Include")
    mark(first, "Unpin")
    expect(page.locator(".mark")).to_have_count(0)
    say(page, "/undo")
    expect(first.locator(".mark")).to_have_text("Pinned. Sent with every question.")
    first.locator(".more > summary").click()
    first.get_by_text("Erase permanently").click()
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(first).to_have_text(re.compile(r"Turn 1 was erased on \d"))
    expect(first).to_be_focused()
    expect(page.locator("#conversation-header h1")).to_have_text("Question 2")
