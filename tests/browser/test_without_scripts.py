"""Everything that matters works as plain forms, in a browser that runs no scripts.

That each route takes its form is shown in tests/web every time, without a browser.
"""

import re
from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.long
def test_an_answer_that_takes_its_time_comes_by_itself(plain: Page, stub: StubModel) -> None:
    stub.default = Reply("It took a while.", seconds_before=2.5)
    plain.goto("/")
    say(plain, "A slow one?")
    expect(plain.locator("#turn-1.running")).to_be_visible()
    # The page asks for itself anew until the answer is there.
    expect(plain.locator("#turn-1.completed .answer")).to_have_text("It took a while.")


@pytest.mark.long
def test_uploading_and_deleting_a_document(plain: Page, server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "geese.txt"
    file.write_text("Geese fly in the shape of a V.")
    plain.goto("/documents")
    plain.locator(".add > summary").click()
    plain.locator("input[type=file]").first.set_input_files(file)
    plain.get_by_role("button", name="Add", exact=True).click()
    row = plain.get_by_role("row", name="geese.txt")
    expect(row).to_be_visible()
    (document,) = [one for one in server.call("GET", "/api/documents")[1]["documents"] if one["name"] == "geese.txt"]
    row.locator(".more > summary").click()
    row.get_by_role("button", name="Delete", exact=True).click()
    expect(plain.get_by_role("row", name="geese.txt")).to_have_count(0)
    assert server.call("GET", f"/api/documents/{document['document_id']}")[0] == 404


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.settings(MAX_HISTORY_TURNS="1", ON_OVERFLOW="ask")
def test_the_question_about_older_turns_is_a_form(plain: Page, server: ServerProcess) -> None:
    for number in range(1, 3):
        known = {} if number == 1 else {"conversation_id": 1}
        server.call("POST", "/api/query", {"question": f"Question {number}"} | known)
    plain.goto("/conversations/1")
    say(plain, "Question 3")
    decision = plain.locator(".decision")
    expect(decision).to_contain_text("This question would leave out 1 earlier turn: turn 1.")
    expect(decision).to_contain_text("The model would see 1 of 2 earlier turns (1 over the turn limit), about")
    expect(decision.locator(".no-summary")).to_be_hidden()
    decision.get_by_label("Remember my choice for this conversation").check()
    decision.get_by_role("button", name="Leave older turns out").click()
    expect(plain.locator("#turn-3.completed")).to_be_visible()
    assert server.call("GET", "/api/conversations/1")[1]["on_overflow"] == "trim"
