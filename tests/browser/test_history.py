"""What the model sees, as the page shows it and lets a person change it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import above, ask, ask_many, dimmed, options, say
from tests.server_process import ServerProcess
from tests.stub_model import Reply, StubModel

SUMMARY = "The person asked five plain things and got short answers."


def test_the_slider_moves_the_horizon_before_anything_is_saved(page: Page, server: ServerProcess) -> None:
    ask_many(page, 7)
    # The line moves when the page has asked what the next question would see.
    expect(page.locator(".horizon .sentence")).to_have_text("it sees 5 of 7 earlier turns (2 over the turn limit)")
    assert dimmed(page) == ["turn-1", "turn-2"]
    tokens = page.locator("#gauge .total").inner_text()
    panel = options(page)
    slider = panel.get_by_label("Window, in turns")
    assert slider.get_attribute("max") == "10"
    slider.fill("2")
    expect(page.locator(".horizon .sentence")).to_have_text("it sees 2 of 7 earlier turns (5 over the turn limit)")
    promise = "If you set this, it sees 2 of 7 earlier turns (5 over the turn limit)."
    expect(panel.locator(".outlook")).to_have_text(promise)
    expect(panel.get_by_label("Earlier turns that the model sees")).to_have_value("2")
    assert len(dimmed(page)) == 5
    assert above(page, ".horizon", "#turn-6")
    expect(page.locator("#gauge .total")).not_to_have_text(tokens)
    panel.get_by_role("button", name="All").click()
    expect(page.locator(".horizon")).to_have_count(0)
    assert dimmed(page) == []
    panel.get_by_label("Which of them").select_option("smart")
    expect(page.locator(".horizon .sentence")).to_have_text(
        "it sees 1 of 7 earlier turns (6 left out by the smart strategy)"
    )
    assert "max_history_turns" not in server.call("GET", "/api/conversations/1")[1]
    page.keyboard.press("Escape")
    expect(panel.get_by_text("Options", exact=True)).to_be_focused()
    expect(page.locator(".horizon .sentence")).to_have_text("it sees 5 of 7 earlier turns (2 over the turn limit)")
    expect(page.locator("#gauge .total")).to_have_text(tokens)


def test_set_keeps_the_window_the_strategy_and_the_overflow_of_one_conversation(
    page: Page, server: ServerProcess
) -> None:
    ask_many(page, 3)
    panel = options(page)
    panel.get_by_label("Earlier turns that the model sees").fill("1")
    panel.get_by_label("When a question would leave turns out").select_option("ask")
    panel.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".horizon .sentence")).to_have_text("it sees 1 of 3 earlier turns (2 over the turn limit)")
    kept = server.call("GET", "/api/conversations/1")[1]
    assert (kept["max_history_turns"], kept["on_overflow"], "history_strategy" in kept) == (1, "ask", False)
    panel = options(page)
    panel.get_by_role("button", name="Default").click()
    panel.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".horizon")).to_have_count(0)
    assert "max_history_turns" not in server.call("GET", "/api/conversations/1")[1]


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="4096")
def test_the_gauge_tells_the_tokens_of_the_limit(page: Page, server: ServerProcess) -> None:
    ask_many(page, 1)
    tokens = server.call("GET", "/api/conversations/1")[1]["view"]["tokens"]
    gauge = page.get_by_label("Tokens used of the limit")
    expect(gauge).to_have_attribute("max", "4096")
    expect(page.locator("#gauge")).to_contain_text(f"About {tokens['total']} of 4,096 tokens")
    assert gauge.evaluate("meter => meter.value") == tokens["total"]


@pytest.mark.settings(MAX_HISTORY_TURNS="3", ON_OVERFLOW="ask")
def test_a_compaction_is_chosen_read_edited_and_undone_and_every_turn_outlives_a_restart(
    page: Page, stub: StubModel, server: ServerProcess
) -> None:
    ask_many(page, 4)
    say(page, "A question that overflows")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This question would leave out 1 earlier turn")
    expect(dialog).not_to_contain_text("on_overflow")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_label("Your question")).to_have_value("A question that overflows")
    expect(page.locator(".turn")).to_have_count(4)

    stub.replies.append(Reply(SUMMARY, seconds_before=0.7))
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Summarise the older turns").click()
    expect(page.locator(".turn.running .state")).to_have_text(re.compile("Summarising turns 1 to 2"))
    expect(page.locator("#turn-5.completed")).to_be_visible()
    expect(page.locator("#turn-5 .note")).to_contain_text("Older turns were summarised for this question.")
    summary = page.get_by_role("region", name="Summary of earlier turns")
    expect(summary).to_contain_text("in place of turns 1 to 2, written by stub-model")
    assert above(page, ".summary", ".horizon")
    assert above(page, ".horizon", "#turn-3")
    summary.get_by_text("Read it").click()
    expect(summary.locator(".text")).to_have_text(SUMMARY)

    summary.get_by_text("Edit it").click()
    box = summary.get_by_label("The summary as the model shall see it")
    box.fill("  ")
    summary.get_by_role("button", name="Save the summary").click()
    expect(summary.get_by_role("alert")).to_contain_text("The summary is empty")
    box.fill("They asked two things.")
    summary.get_by_role("button", name="Save the summary").click()
    expect(summary.locator(".text")).to_have_text("They asked two things.")
    expect(summary).to_contain_text("written by a person")
    expect(summary).to_be_focused()

    for kind in ("edit summary", "compact"):
        summary.get_by_role("button", name=f"Undo: {kind}").click()
        expect(page.locator(".result .command").last).to_have_text("/undo")
        if kind == "edit summary":
            expect(summary).to_contain_text("written by stub-model")
    expect(summary).to_have_count(0)
    expect(page.locator(".horizon .sentence")).to_have_text("it sees 3 of 5 earlier turns (2 over the turn limit)")
    server.terminate()
    server.start("/readyz")
    page.reload()
    questions = [f"Question {n}" for n in range(1, 5)] + ["A question that overflows"]
    expect(page.locator(".turn .question")).to_have_text(questions)
    expect(page.locator(".turn .answer")).to_have_text(["An answer."] * 5)


@pytest.mark.settings(MAX_HISTORY_TURNS="1", ON_OVERFLOW="ask")
def test_a_choice_can_be_remembered_for_the_conversation(page: Page, server: ServerProcess) -> None:
    ask_many(page, 2)
    say(page, "Question 3")
    page.get_by_label("Do the same from now on in this conversation").check()
    page.get_by_role("dialog").get_by_role("button", name="Leave the older turns out").click()
    expect(page.locator("#turn-3.completed")).to_be_visible()
    assert server.call("GET", "/api/conversations/1")[1]["on_overflow"] == "trim"
    ask(page, "Question 4", 4)


@pytest.mark.settings(MAX_HISTORY_TURNS="1", ON_OVERFLOW="continue")
def test_everything_is_sent_with_a_note_where_that_was_chosen(page: Page) -> None:
    ask_many(page, 3)
    expect(page.locator("#turn-3 .note")).to_contain_text("All earlier turns were sent this once")
    expect(page.locator("#turn-3 .trimmed")).to_have_count(0)


def test_commands_are_carried_out_in_place_and_are_no_turns(page: Page, server: ServerProcess) -> None:
    page.goto("/")
    say(page, "/help")
    expect(page.locator(".result li").first).to_contain_text("/history: show what is kept")
    say(page, "/clear")
    expect(page.locator("#composer-error")).to_have_text("There is no conversation yet. Ask something first.")
    expect(page.get_by_label("Your question")).to_have_value("/clear")
    ask(page, "Question 1", 1)
    ask(page, "Question 2", 2)
    box = page.get_by_label("Your question")
    box.press_sequentially("/c")
    choices = page.get_by_role("listbox", name="Commands").get_by_role("option")
    expect(choices).to_have_count(3)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box).to_have_value("/clear")
    expect(choices.first).to_be_hidden()
    page.keyboard.press("Enter")
    result = page.locator(".result").last
    expect(result.get_by_role("status")).to_contain_text("Every turn is still kept; /undo brings the view back.")
    expect(page.locator("#turn-1")).to_be_hidden()
    expect(page.locator(".horizon .sentence")).to_have_text("it sees 0 of 2 earlier turns (2 cleared)")
    assert above(page, ".horizon", ".result")
    page.get_by_role("button", name="Show 2 earlier turns").click()
    expect(page.locator("#turn-1")).to_be_visible()
    assert dimmed(page) == ["turn-1", "turn-2"]
    say(page, "/undo")
    expect(page.locator(".result").last).to_contain_text("The model sees again what it saw before it was cleared.")
    expect(page.locator(".horizon")).to_have_count(0)
    say(page, "/undo")
    expect(page.locator("#composer-error")).to_have_text("There is nothing to undo in conversation 1.")
    expect(box).to_have_value("/undo")
    box.fill("/hist")
    page.keyboard.press("Tab")
    expect(box).to_have_value("/history")
    page.keyboard.press("Enter")
    expect(page.locator(".result").last).to_contain_text("2 turns, 4 messages (2 assistant, 2 user).")
    say(page, "/nothing")
    expect(page.locator("#composer-error")).to_contain_text('There is no command "/nothing".')
    assert server.call("GET", "/api/conversations/1")[1]["turns"] == 2


def test_the_buttons_of_the_options_compact_clear_reset_and_undo(page: Page, stub: StubModel) -> None:
    ask_many(page, 4)
    stub.replies.append(Reply("Four."))
    options(page).get_by_role("button", name="Compact").click()
    expect(page.locator("#summary")).to_contain_text("in place of turns 1 to 2")
    options(page).get_by_role("button", name="Undo: compact").click()
    expect(page.locator("#summary")).to_have_count(0)
    for action in ("Clear", "Reset"):
        options(page).get_by_role("button", name=action).click()
        expect(page.locator(".horizon .sentence")).to_have_text("it sees 0 of 4 earlier turns (4 cleared)")
        options(page).get_by_role("button", name=f"Undo: {action.lower()}").click()
        expect(page.locator(".horizon")).to_have_count(0)


@pytest.mark.settings(MAX_HISTORY_TURNS="1")
def test_a_pinned_turn_is_seen_and_an_excluded_one_is_not(page: Page, stub: StubModel) -> None:
    ask_many(page, 3)
    first, third = page.locator("#turn-1"), page.locator("#turn-3")
    first.get_by_role("button", name="Pin").click()
    expect(first.locator(".mark")).to_have_text("Pinned: the model always sees this exchange.")
    expect(first.get_by_role("button", name="Unpin")).to_be_focused()
    third.get_by_role("button", name="Exclude").click()
    expect(third.locator(".mark")).to_have_text("Excluded: the model does not see this exchange.")
    expect(page.locator("#turn-2")).not_to_have_class(re.compile("beyond"))
    assert dimmed(page) == ["turn-3"]
    page.reload()
    assert dimmed(page) == ["turn-3"]
    ask(page, "Question 4", 4)
    asked = [message["content"] for message in stub.requests[-1].messages if message["role"] == "user"]
    assert asked[:-1] == ["Question 1", "Question 2"]
    third.get_by_role("button", name="Include").click()
    first.get_by_role("button", name="Unpin").click()
    expect(page.locator(".mark")).to_have_count(0)
    say(page, "/undo")
    expect(first.locator(".mark")).to_have_text("Pinned: the model always sees this exchange.")
