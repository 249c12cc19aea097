"""What happens when a question would leave turns out: the dialog, the summary, the way back."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import above, ask, ask_many, say
from tests.server_process import ServerProcess
from tests.stub_model import Reply, StubModel

SUMMARY = "The person asked five plain things and got short answers."


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
