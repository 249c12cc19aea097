"""A question is edited in its place and asked in a branch."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import ask_many
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


def edit(page: Page, turn: int) -> None:
    page.locator(f"#turn-{turn}").hover()
    page.locator(f"#turn-{turn}").get_by_role("link", name="Edit the question").click()


@pytest.mark.shared
def test_an_edited_question_is_asked_in_a_branch_and_both_know_of_each_other(page: Page, stub: StubModel) -> None:
    conversation = ask_many(page, 3)
    edit(page, 2)
    box = page.get_by_label("Edited question")
    expect(box).to_be_focused()
    expect(box).to_have_value("Question 2")
    expect(page.locator("#turn-2 .question")).to_be_hidden()
    stub.default = Reply("The answer in the branch.")
    box.fill("Question 2, but better")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/conversations/{conversation + 1}#turn-2$"))
    expect(page.locator("#turn-2.completed .answer")).to_have_text("The answer in the branch.")
    expect(page.locator(".question")).to_have_text(["Question 1", "Question 2, but better"])
    expect(page.locator(".origin, .branch")).to_have_count(0)  # The arrows say it.
    page.get_by_role("navigation", name="Versions of this question").get_by_role(
        "link", name="Previous version"
    ).click()
    expect(page).to_have_url(re.compile(rf"/conversations/{conversation}\?at=2#turn-2$"))
    expect(page.locator(".question")).to_have_text(["Question 1", "Question 2", "Question 3"])
    versions = page.locator("#turn-2").get_by_role("navigation", name="Versions of this question")
    expect(versions).to_contain_text("1 / 2")
    versions.get_by_role("link", name="Next version").click()
    expect(page).to_have_url(re.compile(rf"/conversations/{conversation + 1}\?at=2#turn-2$"))
    expect(page.get_by_label("Your question")).to_be_focused()


@pytest.mark.shared
def test_an_edited_question_stays_about_documents_of_its_time(page: Page) -> None:
    [library, *_] = page.request.get("/api/libraries").json()["libraries"]
    scope = {"library_ids": [library["library_id"]], "after": "2024-05", "before": "2026"}
    asked = page.request.post("/api/query", data={"question": "When?"} | scope).json()
    page.goto(f"/conversations/{asked['conversation_id']}")
    edit(page, 1)
    page.get_by_label("Edited question").fill("Since when?")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1.completed .question")).to_have_text("Since when?")
    edit(page, 1)
    for name, day in (("after", "2024-05"), ("before", "2026")):
        expect(page.locator(f".edit-question [name={name}]")).to_have_value(day)


def test_escape_and_cancel_leave_the_question_as_it_was(page: Page) -> None:
    ask_many(page, 1)
    for by_key in (True, False):
        edit(page, 1)
        page.get_by_label("Edited question").fill("Something else")
        if by_key:
            page.keyboard.press("Escape")
        else:
            page.get_by_role("link", name="Cancel").click()
        expect(page.locator(".edit-question")).to_have_count(0)
        expect(page.locator("#turn-1 .question")).to_have_text("Question 1")
        expect(page.get_by_role("link", name="Edit the question")).to_be_focused()
    expect(page).to_have_url(re.compile(r"/conversations/1$"))


def test_an_edited_question_that_does_not_arrive_stays_in_its_form(page: Page, server: ServerProcess) -> None:
    ask_many(page, 1)
    edit(page, 1)
    page.get_by_label("Edited question").fill("Something else")
    server.kill()
    page.get_by_role("button", name="Save & ask").click()
    expect(page.locator(".edit-question .error")).to_have_text("The server cannot be reached.")
    server.start()
    page.get_by_role("button", name="Save & ask").click()
    expect(page).to_have_url(re.compile(r"/conversations/2#turn-1$"))
    expect(page.locator("#turn-1.completed .question")).to_have_text("Something else")
