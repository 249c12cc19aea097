"""Conversations on the page: found, exported, erased; and the forms that work without scripts."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.talk import ask_many, call, dimmed, mark, options, window
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


def test_a_search_finds_the_conversation_in_which_the_words_were_said(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    for question, answer in (("How many geese are there?", "Seventeen."), ("What is for lunch?", "Soup.")):
        stub.default = Reply(answer)
        assert server.call("POST", "/api/query", {"question": question})[0] == 200
    page.goto("/conversations/2")
    page.get_by_label("Search conversations").fill("seventeen")
    page.keyboard.press("Enter")
    expect(page.locator("#conversations .title")).to_have_text(["How many geese are there?"])
    expect(page.get_by_role("searchbox")).to_have_value("seventeen")
    page.locator("#conversations .conversation a").click()
    expect(page.locator("#turn-1 .answer")).to_have_text("Seventeen.")
    expect(page.locator("#conversations .title")).to_have_count(1)
    page.get_by_label("Search conversations").fill("zebra")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#conversations")).to_contain_text("No results for “zebra”")
    expect(page.locator("#conversations .title")).to_have_count(0)
    page.get_by_role("link", name="Clear search").click()
    expect(page.locator("#conversations .title")).to_have_count(2)


def test_a_conversation_is_exported_as_markdown_and_as_json(page: Page, tmp_path: Path) -> None:
    ask_many(page, 2)
    for kind, name in (("Markdown", "conversation-1.md"), ("JSON", "conversation-1.json")):
        with page.expect_download() as started:
            options(page).get_by_role("link", name=kind).click()
        assert started.value.suggested_filename == name
        started.value.save_as(tmp_path / name)
    assert "## 2. Question 2\n\nAn answer." in (tmp_path / "conversation-1.md").read_text()
    turns = json.loads((tmp_path / "conversation-1.json").read_text())["turns"]
    assert [turn["question"] for turn in turns] == ["Question 1", "Question 2"]


@pytest.mark.shared
def test_erasing_asks_first_and_leaves_nothing(page: Page, server: ServerProcess) -> None:
    address = f"/api/conversations/{ask_many(page, 1)}"
    panel = options(page)
    asking = page.get_by_role("alertdialog", name="Erase this conversation?")
    panel.get_by_text("Erase permanently").click()
    expect(asking).to_have_accessible_description(re.compile("^All turns of this conversation will be erased"))
    expect(asking.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(asking).to_be_hidden()
    expect(panel.get_by_text("Erase permanently")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(asking).to_be_hidden()
    assert server.call("GET", address)[0] == 200
    panel.get_by_text("Erase permanently").click()
    asking.get_by_role("button", name="Erase").click()
    expect(page.locator("p.confirmation[role=status]")).to_have_text("Conversation erased.")
    assert server.call("POST", f"{address}/restore")[0] == 404


def test_a_long_conversation_and_its_options_fit_on_a_phone(page: Page, server: ServerProcess) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    ask_many(page, 8)
    assert page.locator("#main").evaluate("main => main.scrollWidth <= main.clientWidth")
    window(page).get_by_label("Memory, in turns").fill("2")
    # Its panel covers the line in the transcript, and says itself what that says.
    expect(page.locator("#window").get_by_text("2 of 8 earlier turns")).to_be_in_viewport()
    expect(page.locator("#window").get_by_role("button", name="Apply")).to_be_in_viewport()
    page.keyboard.press("Escape")
    panel = options(page)
    panel.get_by_text("Erase permanently").click()
    button = page.get_by_role("button", name="Erase")
    expect(button).to_be_in_viewport()


def plain(page: Page, text: str) -> None:
    """Send a text by the form alone."""
    page.get_by_label("Your question").fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()


@pytest.mark.settings(MAX_HISTORY_TURNS="2")
def test_commands_marks_and_summaries_work_without_scripts(
    chromium_without_scripts: Browser, server: ServerProcess, stub: StubModel
) -> None:
    page = chromium_without_scripts.new_page(base_url=server.url)
    page.goto("/")
    plain(page, "/help")
    expect(page.locator(".result li").first).to_contain_text("/history: Show what is saved")
    plain(page, "/undo")
    expect(page.get_by_role("alert")).to_have_text("There is no conversation yet. Ask a question first.")
    page.goto("/")
    for number in range(1, 4):
        plain(page, f"Question {number}")
        expect(page.locator(f"#turn-{number}.completed")).to_be_visible()
    assert dimmed(page) == ["turn-1"]
    stub.replies.append(Reply("Two."))
    plain(page, "/compact")
    expect(page.locator(".bill")).to_contain_text("A summary replaces turns 1 and 2.")
    expect(page.locator(".bill")).to_be_in_viewport()
    page.get_by_role("button", name="Summarise", exact=True).click()
    expect(page).to_have_url(re.compile(r"/conversations/1#summary"))
    summary = page.locator("#summary")
    summary.get_by_text("Edit summary").click()
    summary.get_by_label("Summary sent to the model").fill("A better one.")
    summary.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile(r"/conversations/1#summary"))
    expect(summary).to_contain_text("written by a person")
    mark(page.locator("#turn-3"), "Exclude")
    expect(page.locator("#turn-3 .mark")).to_have_text("Excluded. Not sent to the model.")
    window(page).get_by_role("button", name="Undo exclusion change").click()
    expect(page.locator("#turn-3 .mark")).to_have_count(0)
    plain(page, "/clear")
    expect(page.locator("#turn-1")).to_be_hidden()
    page.get_by_text("Show 3 earlier turns").click()
    expect(page.locator("#turn-1")).to_be_visible()
    options(page).get_by_text("Erase permanently").click()
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_text("Conversation erased.")).to_be_visible()


@pytest.mark.settings(MAX_HISTORY_TURNS="1", ON_OVERFLOW="ask", RETRIEVAL_MODE="agent")
def test_the_overflow_choice_and_a_confirmation_work_without_scripts(
    chromium_without_scripts: Browser, server: ServerProcess, stub: StubModel
) -> None:
    page = chromium_without_scripts.new_page(base_url=server.url)
    page.goto("/")
    stub.replies.append(Reply(tool_calls=[call("list_documents")]))  # A model that uses tools is offered them.
    for number in range(1, 3):
        plain(page, f"Question {number}")
        expect(page.locator(f"#turn-{number}.completed")).to_be_visible()
    plain(page, "A question that overflows")
    decision = page.locator(".decision")
    expect(decision).to_contain_text("This question would leave out 1 earlier turn")
    expect(decision.locator("blockquote")).to_have_text("A question that overflows")
    expect(decision).to_be_in_viewport()
    expect(page.get_by_label("Your question")).to_have_value("A question that overflows")
    stub.replies.append(Reply(tool_calls=[call("delete_documents", document_ids=[1])]))
    decision.get_by_label("Remember my choice for this conversation").check()
    decision.get_by_role("button", name="Leave older turns out").click()
    expect(page.locator("#turn-3.completed .step .tool")).to_have_text("delete_documents")
    assert server.call("GET", "/api/conversations/1")[1]["on_overflow"] == "trim"
    page.locator("#turn-3").get_by_role("button", name="Keep").click()
    expect(page.locator("#turn-4.completed .answer")).to_have_text("Nothing was deleted.")
    expect(page.locator("#turn-3 .mark")).to_contain_text("Completed.")
