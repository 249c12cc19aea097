"""Rated answers: their questions are asked again from the page, one after the other, until somebody stops that."""

import re
import threading

from playwright.sync_api import Page, expect

from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


def rate_three(server: ServerProcess, stub: StubModel) -> None:
    """Ask three questions and rate their answers: the first two up, the last one down."""
    for number, rating in ((1, "up"), (2, "up"), (3, "down")):
        stub.replies.append(Reply(f"At {number} o'clock."))
        _, turn = server.call("POST", "/api/query", {"question": f"Question {number}?"})
        body = {"rating": rating} | ({"right_answer": "At four."} if rating == "down" else {})
        server.call("PUT", f"/api/turns/{turn['turn_id']}/rating", body)


def test_rated_questions_are_asked_again_with_progress_and_compared(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    rate_three(server, stub)
    page.goto("/ratings")
    gate = threading.Event()
    stub.replies.extend([Reply("At 1 o'clock."), Reply("Never, says nobody.", gate=gate), Reply("At four.")])
    page.get_by_role("button", name="Ask all again").click()
    progress = page.locator("#rated-progress")
    expect(progress).to_have_text("Question 2 of 3 …")
    expect(page.get_by_role("button", name="Ask all again")).to_be_disabled()
    gate.set()
    expect(progress).to_have_text("3 questions: 1 worse, 1 better, 1 same.")
    expect(page.locator(".rated li .verdict")).to_have_text(["Better", "Worse", "Same"])
    second = page.locator("#rated-2")
    expect(second).to_contain_text("wording kept: 100% → ")
    second.get_by_text("Both answers").click()
    expect(second).to_contain_text("Never, says nobody.")
    stub.replies.append(Reply("At 2 o'clock."))
    second.get_by_role("button", name="Ask “Question 2?” again").press("Enter")
    expect(progress).to_have_text("1 question: 1 same. Since the last run: 1 better.")
    assert len(server.call("GET", "/api/conversations")[1]["conversations"]) == 3, "conversations are unchanged"


def test_stop_ends_asking_again_and_keeps_what_came(page: Page, server: ServerProcess, stub: StubModel) -> None:
    rate_three(server, stub)
    page.goto("/ratings")
    gate = threading.Event()
    stub.replies.extend([Reply("At 1 o'clock."), Reply("Late.", gate=gate)])
    asked = len(stub.requests)
    page.get_by_role("button", name="Ask all again").click()
    progress = page.locator("#rated-progress")
    expect(progress).to_have_text("Question 2 of 3 …")
    page.get_by_role("button", name="Stop").click()
    expect(progress).to_have_text("Stopped. 1 question: 1 same.")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.get_by_role("button", name="Ask all again")).to_be_enabled()
    gate.set()
    page.reload()
    expect(page.locator("#rated-1 .verdict")).to_have_text("Same")
    expect(page.locator("#rated-3 .verdict")).to_have_count(0)
    assert len(stub.requests) == asked + 2


def test_a_model_that_fails_is_told_at_its_question(page: Page, server: ServerProcess, stub: StubModel) -> None:
    rate_three(server, stub)
    page.goto("/ratings")
    stub.replies.append(Reply(status=401))
    page.locator("#rated-3").get_by_role("button").click()
    expect(page.locator("#rated-progress")).to_have_text("1 question: 1 failed.")
    expect(page.locator("#rated-3 .error")).to_contain_text(re.compile("API key"))
