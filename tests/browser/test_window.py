"""The window of a conversation: the chip, its panel, the line that moves before anything is kept."""

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.holding import Held
from tests.browser.talk import above, ask, ask_many, dimmed, mark, window
from tests.testkit.server_process import ServerProcess

SEES_FIVE = "5 of 7 earlier turns (2 over the turn limit)"
SEES_TWO = "2 of 7 earlier turns (5 over the turn limit)"


@pytest.mark.shared
def test_the_slider_moves_the_line_before_anything_is_kept_and_the_latest_wish_wins(
    page: Page, server: ServerProcess
) -> None:
    conversation = ask_many(page, 7)
    sentence = page.locator(".horizon .sentence")
    expect(sentence).to_have_text(SEES_FIVE)
    expect(page.locator(".turn.beyond")).to_have_count(2)
    tokens = page.locator(".gauge b.total").inner_text()
    panel = window(page)
    slider = panel.get_by_label("Memory, in turns")
    expect(slider).to_be_focused()
    expect(slider).to_have_attribute("max", "11")
    # The default holds, so it is drawn like a value.
    shades = panel.locator("#max-history-turns").evaluate(
        "(box) => [null, '::placeholder'].map((part) => getComputedStyle(box, part).color)"
    )
    assert shades[0] == shades[1]
    slider.fill("2")
    expect(sentence).to_have_text(SEES_TWO)
    expect(panel.locator(".preview-result")).to_have_text(f"Preview: {SEES_TWO} would be sent.")
    expect(panel.get_by_label("How many earlier turns to send")).to_have_value("2")
    expect(page.locator(".turn.beyond")).to_have_count(5)
    assert above(page, ".horizon", "#turn-6")
    expect(page.locator(".gauge b.total")).not_to_have_text(tokens)
    panel.get_by_role("button", name="All turns").click()
    expect(page.locator(".horizon")).to_have_count(0)
    assert dimmed(page) == []
    panel.get_by_label("Which turns").select_option("smart")
    expect(sentence).to_have_text("1 of 7 earlier turns (6 left out by smart memory)")
    assert "max_history_turns" not in server.call("GET", f"/api/conversations/{conversation}")[1]
    page.keyboard.press("Escape")
    expect(panel.locator("summary")).to_be_focused()
    expect(panel.locator(".choices")).to_be_hidden()
    expect(sentence).to_have_text(SEES_FIVE)
    expect(page.locator(".gauge b.total")).to_have_text(tokens)

    # However slow the answers are.
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request) if "/preview?" in request.url else None)
    first = Held(page, "**/preview?*")
    slider = window(page).get_by_label("Memory, in turns")
    with page.expect_request("**/preview?*"):
        slider.fill("1")
    for turns in ("2", "3", "4"):
        slider.fill(turns)
    first.route.continue_()
    expect(sentence).to_have_text("4 of 7 earlier turns (3 over the turn limit)")
    assert len(asked) == 2


def test_the_keyboard_alone_tries_sets_and_cancels(page: Page, server: ServerProcess) -> None:
    ask_many(page, 7)
    sentence = page.locator(".horizon .sentence")
    expect(sentence).to_have_text(SEES_FIVE)
    chip = page.locator("#window summary")
    expect(chip).to_have_text("Memory: last 5 turns")
    chip.press("Enter")
    slider = page.get_by_label("Memory, in turns")
    expect(slider).to_be_focused()
    for _ in range(3):
        slider.press("ArrowLeft")
    expect(sentence).to_have_text(SEES_TWO)
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(sentence).to_have_text(SEES_FIVE)
    chip.press("Enter")
    slider.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "all")
    expect(page.locator(".horizon")).to_have_count(0)
    slider.press("Home")
    expect(sentence).to_have_text("0 of 7 earlier turns (7 over the turn limit)")
    page.get_by_role("button", name="Apply", exact=True).press("Enter")
    expect(chip).to_have_text("Memory: none")
    expect(page.locator(".previewing")).to_have_count(0)
    assert server.call("GET", "/api/conversations/1")[1]["max_history_turns"] == 0


@pytest.mark.every_time
@pytest.mark.shared
def test_set_keeps_the_window_and_the_strategy_leaves_the_rest_and_says_what_cannot_be_kept(
    page: Page, server: ServerProcess
) -> None:
    address = f"/api/conversations/{ask_many(page, 3, on_overflow='ask')}"
    expect(page.locator("#window summary")).to_have_text("Memory: last 5 turns")
    control = window(page)
    control.get_by_label("How many earlier turns to send").fill("1")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        control.get_by_role("button", name="Apply", exact=True).click()
    expect(page.locator("#window summary")).to_have_text("Memory: last turn")
    expect(page.locator(".horizon .sentence")).to_have_text("1 of 3 earlier turns (2 over the turn limit)")
    kept = server.call("GET", address)[1]
    assert (kept["max_history_turns"], kept["on_overflow"], "history_strategy" in kept) == (1, "ask", False)
    control = window(page)
    control.get_by_role("button", name="Default (5)").click()
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        control.get_by_role("button", name="Apply", exact=True).click()
    expect(page.locator(".horizon")).to_have_count(0)
    kept = server.call("GET", address)[1]
    assert ("max_history_turns" in kept, kept["on_overflow"]) == (False, "ask")
    control = window(page)
    page.route(f"**{address}", lambda route: route.abort())
    control.get_by_role("button", name="Apply", exact=True).click()
    expect(control.get_by_role("alert")).to_have_text("The server cannot be reached.")


def test_a_pinned_turn_above_the_line_is_not_dimmed(page: Page) -> None:
    ask_many(page, 3)
    mark(page.locator("#turn-1"), "Pin")
    expect(page.locator("#turn-1 .mark")).to_have_text("Pinned. Sent with every question.")
    window(page).get_by_label("Memory, in turns").fill("1")
    expect(page.locator(".turn.beyond")).to_have_count(1)
    assert dimmed(page) == ["turn-2"]
    assert above(page, ".horizon", "#turn-3")


def test_a_line_above_the_turns_that_are_shown_dims_none_of_them(page: Page, server: ServerProcess) -> None:
    for number in range(1, 54):
        known = {} if number == 1 else {"conversation_id": 1}
        assert server.call("POST", "/api/query", {"question": f"Question {number}"} | known)[0] == 200
    server.call("PATCH", "/api/conversations/1", {"max_history_turns": 51})
    page.goto("/conversations/1")
    expect(page.locator("#turn-53")).to_be_visible()
    expect(page.locator("#window summary")).to_have_text("Memory: last 51 turns")
    expect(page.locator(".turn.beyond")).to_have_count(0)
    slider = window(page).get_by_label("Memory, in turns")
    slider.fill("10")
    expect(page.locator(".horizon .sentence")).to_contain_text("10 of 53")
    slider.fill("52")
    expect(page.locator(".horizon")).to_have_count(0)
    expect(page.locator(".turn.beyond")).to_have_count(0)


def test_an_answer_moves_the_line_and_the_chip_stays(page: Page) -> None:
    ask_many(page, 5)
    expect(page.locator(".horizon")).to_have_count(0)
    ask(page, "Question 6", 6)
    expect(page.locator(".horizon .sentence")).to_have_text("5 of 6 earlier turns (1 over the turn limit)")
    assert above(page, ".horizon", "#turn-2")
    expect(page.locator("#window summary")).to_have_text("Memory: last 5 turns")


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="2000")
def test_the_bar_of_tokens_comes_only_near_the_limit_and_has_its_legend(page: Page) -> None:
    ask_many(page, 1)
    bar = page.locator("#gauge .tokens-bar")
    expect(page.locator("#gauge .words")).to_contain_text("of 2,000")
    expect(bar).to_be_hidden()
    page.get_by_label("Your question").fill("word " * 1200)
    expect(bar).to_be_visible()
    page.locator("#gauge button").focus()
    legend = page.locator("#gauge-figures tr:visible")
    expect(legend.filter(has_text="question")).to_have_count(1)
    expect(legend.filter(has_text="instructions").locator(".swatch")).to_be_visible()
    page.get_by_label("Your question").fill("")
    expect(bar).to_be_hidden()


@pytest.mark.settings(OPENAI_BASE_URL="", OPENAI_MODEL="")
def test_without_a_model_there_is_no_memory_to_set(page: Page) -> None:
    ask_many(page, 1)
    expect(page.locator("#window-slot > *")).to_have_count(0)
    expect(page.locator("#gauge > *")).to_have_count(0)
