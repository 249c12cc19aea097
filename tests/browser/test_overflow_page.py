"""What happens when a question would leave turns out: the dialog, the summary, the way back."""

import re
import threading

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import above, ask, ask_many, say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

SUMMARY = "An answer about sailing alone, and the boats."


@pytest.mark.shared
def test_a_compaction_shows_that_it_is_under_way_and_is_read_and_edited(page: Page, stub: StubModel) -> None:
    conversation = ask_many(page, 4, "Never sail alone.", "There are 12 boats.")
    bar, summary = page.locator("#operation"), page.get_by_role("region", name="Summary of earlier turns")
    expect(bar).to_be_hidden()
    summarised = threading.Event()
    stub.replies.append(Reply(SUMMARY, gate=summarised))
    say(page, "/compact")
    dialog = page.get_by_role("dialog", name="What a summary may lose")
    expect(dialog.get_by_label("There are 12 boats.")).to_be_checked()
    expect(dialog.get_by_label("Never sail alone.")).to_be_disabled()
    dialog.get_by_label("There are 12 boats.").uncheck()
    dialog.get_by_label("What matters most").fill("the boats")
    dialog.get_by_role("button", name="Summarise").click()
    expect(bar).to_contain_text("Summarising turns 1 and 2")
    summarised.set()
    expect(summary).to_contain_text("in place of turns 1 and 2, written by stub-model")
    expect(bar).to_be_hidden()
    assert above(page, ".summary", ".horizon")
    assert above(page, ".horizon", "#turn-3")
    summary.get_by_text("Read summary").click()
    expect(summary.locator(".text p")).to_have_text(
        [f"Turns 1 and 2: {SUMMARY}", "Kept word for word:", "Turn 1, User: Never sail alone."]
    )

    summary.get_by_text("Edit summary").click()
    box = summary.get_by_label("Summary sent to the model")
    box.fill("They asked two things.")
    summary.get_by_role("button", name="Save").click()
    expect(summary.locator(".text")).to_have_text("They asked two things.")
    expect(summary).to_contain_text("written by a person")
    expect(summary).to_be_focused()
    with page.expect_response(f"**/conversations/{conversation}"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(summary).to_be_focused()

    summary.get_by_role("button", name="Undo summary edit").click()
    expect(summary).to_contain_text("written by stub-model")
    expect(page.locator(".turn .answer")).to_have_text(["An answer."] * 4)


@pytest.mark.settings(MAX_HISTORY_TURNS="3", ON_OVERFLOW="ask")
def test_a_compaction_is_chosen_and_undone_and_every_turn_outlives_a_restart(
    page: Page, stub: StubModel, server: ServerProcess
) -> None:
    ask_many(page, 4)
    say(page, "A question that overflows")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This question would leave out 1 earlier turn")
    expect(dialog).to_contain_text("The model would see 3 of 4 earlier turns (1 over the turn limit), about")
    expect(dialog).not_to_contain_text("on_overflow")
    expect(dialog.locator(".no-summary")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_label("Your question")).to_have_value("A question that overflows")
    expect(page.locator(".turn")).to_have_count(4)

    stub.replies.append(Reply(SUMMARY, seconds_before=0.7))
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Summarise older turns").click()
    page.get_by_role("dialog", name="What a summary may lose").get_by_role("button", name="Summarise").click()
    expect(page.locator("#operation")).to_contain_text("Summarising turns 1 and 2")
    expect(page.locator("#turn-5.completed")).to_be_visible()
    summary = page.get_by_role("region", name="Summary of earlier turns")
    summary.get_by_text("Edit summary").click()
    summary.get_by_label("Summary sent to the model").fill("  ")
    summary.get_by_role("button", name="Save").click()
    expect(summary.get_by_role("alert")).to_contain_text("The summary is empty")
    summary.get_by_role("button", name="Undo summary").click()
    expect(summary).to_have_count(0)
    expect(page.locator(".horizon .sentence")).to_have_text("3 of 5 earlier turns (2 over the turn limit)")
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
    page.get_by_label("Remember my choice for this conversation").check()
    page.get_by_role("dialog").get_by_role("button", name="Leave older turns out").click()
    expect(page.locator("#turn-3.completed")).to_be_visible()
    assert server.call("GET", "/api/conversations/1")[1]["on_overflow"] == "trim"
    ask(page, "Question 4", 4)


@pytest.mark.shared
def test_everything_is_sent_with_a_note_where_that_was_chosen(page: Page) -> None:
    ask_many(page, 3, max_history_turns=1, on_overflow="continue")
    expect(page.locator("#turn-3 .note")).to_contain_text("All earlier turns were sent this once")
    expect(page.locator("#turn-3 .trimmed")).to_have_count(0)


LONG = "A long question about one thing and another, asked with many words. " * 30


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="2000", MAX_HISTORY_TURNS="20")
def test_a_long_compaction_shows_how_far_it_has_come_and_a_crash_leaves_nothing_of_it(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    for number in range(1, 6):
        known = {} if number == 1 else {"conversation_id": 1}
        assert server.call("POST", "/api/query", {"question": f"{number}. {LONG}"} | known)[0] == 200
    page.goto("/conversations/1")
    bar = page.locator("#operation")
    expect(bar).to_be_hidden()
    stub.replies.append(Reply("They asked about one thing."))
    stub.default = Reply(hang_before_headers=True)
    say(page, "/compact")
    page.get_by_role("dialog").get_by_role("button", name="Summarise").click()
    expect(bar).to_contain_text(re.compile(r"Summarising turns 1 to \d, part 2 of \d\."))
    expect(bar.get_by_role("progressbar")).to_have_js_property("value", 1)
    other = page.context.new_page()
    other.goto("/conversations/1")
    expect(other.locator("#operation")).to_contain_text("part 2 of")
    other.close()
    server.kill()
    server.start("/readyz")
    page.reload()
    expect(page.locator("#turn-5")).to_be_visible()
    expect(bar).to_be_hidden()
    assert server.call("GET", "/api/conversations/1/operation") == (200, {"operation": None})
    assert server.call("GET", "/api/conversations/1")[1]["view"]["summary"] is None


@pytest.mark.every_time
@pytest.mark.shared
def test_the_dialog_is_answered_by_keyboard_and_cancel_gives_the_question_back(page: Page) -> None:
    ask_many(page, 2, max_history_turns=1, on_overflow="ask")
    say(page, "Question 3")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This question would leave out 1 earlier turn")
    first = dialog.get_by_role("button", name="Leave older turns out")
    expect(first).to_be_focused()
    dialog.get_by_role("button", name="Cancel").press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.get_by_label("Your question")).to_have_value("Question 3")
    page.keyboard.press("Enter")
    expect(first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Start over")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#turn-3.completed")).to_be_visible()
    expect(page.locator(".horizon .sentence")).to_contain_text("2 from before you started over")
