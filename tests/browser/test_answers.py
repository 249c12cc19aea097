"""What can be done with an answer: have it anew, go back to an earlier one, copy it, see how it came about."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.talk import ask, ask_many, call
from tests.testkit.stub_model import Reply, StubModel

COPIED: Any = "navigator.clipboard.readText()"


def regenerate(page: Page, turn: int) -> None:
    page.locator(f"#turn-{turn}").get_by_role("button", name="Regenerate").click()


@pytest.mark.shared
def test_an_answer_given_anew_keeps_the_earlier_one_and_each_can_be_read_and_rated(page: Page, stub: StubModel) -> None:
    page.goto("/")
    stub.default = Reply("The first answer.")
    turn = ask(page, "Why?", 1)
    stub.default = Reply("The second answer.")
    regenerate(page, 1)
    expect(turn.locator(".answer")).to_have_text("The second answer.")
    expect(turn.locator(".versions .position .visually-hidden")).to_have_text("Answer 2 of 2")
    bad = turn.get_by_role("button", name="Bad answer")
    bad.press("Enter")
    expect(bad).to_be_focused()
    expect(bad).to_have_attribute("aria-pressed", "true")
    turn.get_by_role("button", name="Previous answer").click()
    expect(turn.locator(".answer")).to_have_text("The first answer.")
    expect(bad).to_have_attribute("aria-pressed", "false")
    expect(turn.get_by_role("button", name="Previous answer")).to_be_disabled()
    turn.get_by_role("button", name="Next answer").press("Enter")
    expect(turn.locator(".answer")).to_have_text("The second answer.")
    expect(bad).to_have_attribute("aria-pressed", "true")


@pytest.mark.shared
def test_the_right_answer_is_given_to_a_bad_one_and_goes_with_its_rating(page: Page) -> None:
    ask_many(page, 1)
    turn = page.locator("#turn-1")
    bad, right = turn.get_by_role("button", name="Bad answer"), turn.get_by_label("The right answer")
    bad.press("Enter")
    right.fill("The third answer.")
    turn.get_by_role("button", name="Save").click()
    expect(turn.get_by_text("Right answer: The third answer.")).to_be_focused()
    expect(right).to_be_hidden()
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    expect(turn.locator(".right-answer")).to_have_count(0)


def test_the_model_sees_the_answer_that_was_chosen(page: Page, stub: StubModel) -> None:
    page.goto("/")
    stub.default = Reply("The first answer.")
    turn = ask(page, "Why?", 1)
    stub.default = Reply("The second answer.")
    regenerate(page, 1)
    expect(turn.locator(".answer")).to_have_text("The second answer.")
    turn.get_by_role("button", name="Previous answer").click()
    expect(turn.locator(".answer")).to_have_text("The first answer.")
    ask(page, "And then?", 2)
    assert "The first answer." in str(stub.requests[-1].messages)
    assert "The second answer." not in str(stub.requests[-1].messages)


def test_a_question_that_was_stopped_before_the_first_word_can_be_asked_again(page: Page, stub: StubModel) -> None:
    page.goto("/")
    stub.default = Reply(hang_at=0)
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1.running")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped .state")).to_have_text("Stopped before the first word.")
    stub.default = Reply("Because.")
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator("#turn-1.completed .answer")).to_have_text("Because.")
    expect(page.locator(".versions")).to_have_count(0)


def test_only_the_last_answer_offers_to_be_had_anew(page: Page) -> None:
    ask_many(page, 2)
    expect(page.locator("#turn-2").get_by_role("button", name="Regenerate")).to_be_visible()
    expect(page.locator("#turn-1").get_by_role("button", name="Regenerate")).to_be_hidden()


def test_what_can_be_done_with_an_earlier_answer_is_seen_by_the_pointer_and_by_the_focus(page: Page) -> None:
    ask_many(page, 2)
    earlier, latest = page.locator("#turn-1"), page.locator("#turn-2")
    for control in (".edit", "[data-copy-answer]", ".seen", ".more > summary"):
        expect(earlier.locator(control)).to_have_css("opacity", "0")
    for control in ("[data-copy-answer]", ".seen", ".more > summary"):
        expect(latest.locator(control)).to_have_css("opacity", "1")
    earlier.locator(".answer").hover()
    for control in (".edit", "[data-copy-answer]", ".seen", ".more > summary"):
        expect(earlier.locator(control)).to_have_css("opacity", "1")
    page.get_by_label("Your question").hover()
    expect(earlier.locator(".seen")).to_have_css("opacity", "0")
    earlier.locator(".seen").focus()
    expect(earlier.locator(".seen")).to_have_css("opacity", "1")


@pytest.mark.every_time
@pytest.mark.shared
def test_an_answer_is_copied_as_markdown_and_code_as_it_is(
    context: BrowserContext, page: Page, stub: StubModel
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    stub.default = Reply("It is **five**:\n\n```python\nprint(5)\n```\n\nand | that |.")
    page.goto("/")
    turn = ask(page, "Why?", 1)
    turn.get_by_role("button", name="Copy the answer as Markdown").click()
    expect(page.get_by_text("Answer copied as Markdown.")).to_be_visible()
    assert page.evaluate(COPIED) == stub.default.text
    expect(turn.locator(".code-bar span")).to_have_text("python")
    expect(page.get_by_role("log")).to_contain_text("print(5)")
    expect(page.get_by_role("log")).not_to_contain_text("python")
    turn.get_by_role("button", name="Copy", exact=True).click()
    expect(turn.locator("[data-copy-code]")).to_have_text("Copied")
    assert page.evaluate(COPIED) == "print(5)\n"


def test_code_can_be_copied_while_the_answer_goes_on(context: BrowserContext, page: Page, stub: StubModel) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    stub.default = Reply("```python\nprint(5)\n```\n\n" + "word " * 3000, seconds_between=0.05)
    page.goto("/")
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("word word")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator(".running [data-copy-code]")).to_have_text("Copied")
    assert page.evaluate(COPIED) == "print(5)\n"
    page.get_by_role("button", name="Stop").click()


@pytest.mark.shared
def test_what_was_left_out_is_said_once(page: Page) -> None:
    ask_many(page, 4, max_history_turns=1)
    expect(page.locator(".trimmed")).to_have_count(1)
    expect(page.locator("#turn-3 .trimmed")).to_contain_text("The model saw 1 of 2 earlier turns")
    expect(page.locator("#turn-4 .seen")).to_have_attribute(
        "title", "The model saw 1 of 3 earlier turns (2 over the turn limit)."
    )
    expect(page.locator(".horizon")).to_contain_text("Your next question sends 1 of 4 earlier turns")


@pytest.mark.shared
def test_the_menu_of_an_answer_opens_and_closes_as_menus_do(page: Page) -> None:
    ask_many(page, 1)
    menu = page.locator("#turn-1 .more")
    menu.locator("> summary").click()
    expect(menu.get_by_text("Answered by stub-model")).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu.get_by_role("button", name="Pin")).to_be_hidden()
    expect(menu.locator("> summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(menu.get_by_role("button", name="Pin")).to_be_visible()
    page.locator("#main h1").click()
    expect(menu.get_by_role("button", name="Pin")).to_be_hidden()


@pytest.mark.parametrize(
    ("width", "height", "direction"),
    [
        (640, 400, "rtl"),
        pytest.param(390, 844, "ltr", marks=pytest.mark.long),
        pytest.param(1280, 800, "ltr", marks=pytest.mark.long),
        pytest.param(390, 844, "rtl", marks=pytest.mark.long),
    ],
)
def test_the_menu_of_an_answer_is_never_cut_off(page: Page, width: int, height: int, direction: str) -> None:
    page.set_viewport_size({"width": width, "height": height})
    ask_many(page, 3)
    regenerate(page, 3)
    expect(page.locator("#turn-3 .versions")).to_be_visible()
    page.evaluate("direction => { document.dir = direction; }", direction)
    for number in (1, 3):
        menu = page.locator(f"#turn-{number} .more")
        menu.locator("> summary").click()
        for part in (menu.get_by_role("button", name="Pin"), menu.get_by_text("Answered by")):
            expect(part).to_be_in_viewport(ratio=1)
            part.click(trial=True)  # Nothing lies on top of it.
        if number == 1 and height > 400:
            assert menu.evaluate("menu => menu.lastElementChild.offsetTop + 1 >= menu.getBoundingClientRect().bottom")
        page.keyboard.press("Escape")


def test_the_menu_of_an_answer_stays_at_its_button_when_the_page_moves(page: Page) -> None:
    page.set_viewport_size({"width": 640, "height": 460})
    ask_many(page, 3)
    menu = page.locator("#turn-2 .more")
    menu.locator("> summary").click()
    gap = "menu => menu.querySelector('.menu-list').offsetTop - menu.getBoundingClientRect().bottom"
    page.locator("#main").evaluate("main => { main.scrollTop -= 60; }")
    page.wait_for_function("menu => Math.abs((" + gap + ")(menu)) < 2", arg=menu.element_handle())


@pytest.mark.settings(RETRIEVAL_MODE="agent")
def test_the_steps_to_an_answer_are_one_line_that_opens(page: Page, stub: StubModel) -> None:
    stub.replies += [Reply("", tool_calls=[call("list_documents")]), Reply("", tool_calls=[call("list_documents")])]
    page.goto("/")
    turn = ask(page, "What is there?", 1)
    expect(turn.locator(".step").first).to_be_hidden()
    turn.get_by_text("Used 2 tools").click()
    expect(turn.locator(".step .tool").first).to_be_visible()


@pytest.mark.shared
def test_a_screen_reader_hears_sentences_and_the_end_but_not_every_piece_and_the_focus_stays_where_somebody_types(
    page: Page, stub: StubModel
) -> None:
    stub.default = Reply("The first sentence. " + "More words. " * 15, seconds_between=0.07)
    page.goto("/")
    page.get_by_label("Your question").fill("Why?")
    page.keyboard.press("Enter")
    said = page.get_by_role("log")
    expect(said).to_contain_text("Answer begins.")
    expect(page.get_by_label("Your question")).to_be_focused()
    search = page.get_by_label("Search conversations")
    search.click()
    expect(said).to_contain_text("The first sentence.")
    expect(page.locator(".answer[aria-live]")).to_have_count(0)
    expect(said.locator("p").last).to_have_text(re.compile(r"Answer complete\. "))
    assert said.locator("p").count() < 12
    # The box is free again: all that follows an answer has been done.
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
    expect(search).to_be_focused()
