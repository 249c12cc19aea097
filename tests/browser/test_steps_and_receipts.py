"""What the model did for an answer and what it was sent: tool steps, confirmations, receipts."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.shelf import upload
from tests.browser.talk import ask, call, say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


@pytest.mark.every_time
@pytest.mark.settings(RETRIEVAL_MODE="agent")
def test_tool_steps_are_shown_and_a_deletion_is_confirmed(page: Page, stub: StubModel, server: ServerProcess) -> None:
    doomed: dict[str, Any] = {"name": "old.md"}
    doomed["document_id"] = upload(server, "old.md", "The old guide to the lighthouse.")
    stub.replies.extend(
        [
            Reply(tool_calls=[call("search_documents", query="old <b>guide</b>")]),
            Reply("Let me look.", tool_calls=[call("list_documents")]),
            Reply(tool_calls=[call("delete_documents", document_ids=[doomed["document_id"]])], seconds_before=1.0),
        ]
    )
    page.goto("/")
    say(page, "Delete the oldest page of the guide")
    running = page.locator(".turn.running .step")
    expect(running).to_have_count(2)
    expect(running.first.locator("summary")).to_have_text('1. search_documents query: "old <b>guide</b>"')
    page.locator(".turn.running .steps > summary").click()
    running.nth(1).locator("summary").click()
    turn = page.locator("#turn-1.completed")
    steps = turn.locator(".step")
    expect(steps.locator(".tool")).to_have_text(["search_documents", "list_documents", "delete_documents"])
    expect(steps.first.locator("summary")).to_have_text('1. search_documents query: "old <b>guide</b>"')
    expect(steps.nth(0).locator(".result-text")).to_be_hidden()
    # What was unfolded while the answer was written stays so.
    expect(steps.nth(1).locator(".result-text")).to_contain_text(doomed["name"])
    turn.get_by_text("Used 3 tools").click()
    expect(steps.nth(1).locator(".result-text")).to_be_hidden()
    expect(turn.locator(".answer")).to_contain_text(f"Found 1 document: {doomed['name']}. Delete it?")
    turn.get_by_role("button", name="Delete").click()
    expect(page.locator("#turn-2.completed .answer")).to_have_text(f"1 document deleted: {doomed['name']}.")
    expect(turn.get_by_role("button", name="Delete")).to_have_count(0)
    expect(page.locator("#turn-2 .mark")).to_have_text("Completed. This turn is no longer sent to the model.")
    expect(page.locator("#turn-2")).to_have_class(re.compile("beyond"))
    expect(turn.locator(".mark")).to_have_text("The confirmed call is no longer sent to the model.")
    expect(turn).not_to_have_class(re.compile("beyond"))  # Its other calls are.
    assert doomed["name"] not in [one["name"] for one in server.call("GET", "/api/documents")[1]["documents"]]


@pytest.mark.settings(RETRIEVAL_MODE="agent")
def test_keep_deletes_nothing(page: Page, stub: StubModel, server: ServerProcess) -> None:
    before = server.call("GET", "/api/documents")[1]["documents"]
    stub.replies.append(Reply(tool_calls=[call("delete_documents", document_ids=[before[0]["document_id"]])]))
    page.goto("/")
    ask(page, "Delete a page", 1).get_by_role("button", name="Keep").click()
    expect(page.locator("#turn-2.completed .answer")).to_have_text("Nothing was deleted.")
    assert len(server.call("GET", "/api/documents")[1]["documents"]) == len(before)


@pytest.mark.settings(RETRIEVAL_MODE="agent")
def test_a_receipt_shows_every_request_of_a_turn_and_copies_the_last(page: Page, stub: StubModel) -> None:
    usage = {"prompt_tokens": 1500, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1000}}
    for n in range(4):
        stub.replies.append(Reply(tool_calls=[call("search_documents", query=f"word {n}")], usage=usage))
    stub.replies.append(Reply("Done.", usage=usage))
    page.goto("/")
    ask(page, "Search a lot", 1).get_by_role("link", name="What the model saw").click()
    receipt = page.locator("#drawer .receipt")
    expect(receipt.locator(".facts")).to_contain_text("Tool calls of this turn: last 2 rounds sent, 2 left out.")
    expect(receipt).to_contain_text("Reported by the provider: 7,500. For all 5 requests. From cache: 5,000.")
    receipt.get_by_text("Raw messages").click()
    expect(receipt.locator(".earlier-request summary")).to_have_count(4)
    expect(receipt.locator(".earlier-request .message").first).to_be_hidden()
    last = receipt.locator(".raw > .messages .message")
    expect(last.locator(".role")).to_have_text(
        ["system", "user", "assistant", "tool", "assistant", "tool"], ignore_case=True
    )
    expect(last.nth(2)).to_contain_text('calls search_documents{"query": "word 2"}', use_inner_text=False)
    expect(last.nth(3)).to_contain_text("<passages>")
    expect(receipt.locator(".sum")).to_have_text(re.compile(r"^[0-9a-f]{64}$"))
    expect(receipt).to_contain_text("Hash of everything before the question (1 message).")
    expect(receipt.locator(".tokens-legend")).to_contain_text(re.compile(r"tools [\d,]+"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    receipt.get_by_role("button", name="Copy as JSON").click()
    expect(page.locator(".toast")).to_have_text("Request copied.")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied["messages"] == stub.requests[-1].messages
    assert copied["tools"][0]["function"]["name"] == "search_documents"


def test_a_receipt_tells_part_by_part_what_was_sent_and_leads_to_what_was_left_out(
    page: Page, stub: StubModel, server: ServerProcess
) -> None:
    conversation = server.call("POST", "/api/conversations", {})[1]["conversation_id"]
    server.call("PATCH", f"/api/conversations/{conversation}", {"max_history_turns": 1})
    stub.default = Reply("Copy the folder [1].")
    for number in range(1, 4):
        question = f"How is a backup made, question {number}?"
        assert server.call("POST", "/api/query", {"question": question, "conversation_id": conversation})[0] == 200
    page.goto(f"/conversations/{conversation}")
    page.locator("#turn-3").get_by_role("link", name="What the model saw").click()
    receipt = page.locator("#drawer .receipt")
    expect(receipt.locator(".lead")).to_contain_text("This is exactly what was sent to stub-model for answer 3.")
    expect(receipt.locator(".part > summary > span:first-child")).to_have_text(
        ["Instructions", "Notice about left-out turns", "Turn 2", "Passages from your documents", "Question"]
    )
    expect(receipt.locator(".part.of-question pre")).to_have_text("How is a backup made, question 3?")
    expect(receipt.locator(".tokens-bar rect")).to_have_count(4)
    expect(receipt.locator(".tokens-legend")).to_contain_text("passages")
    expect(receipt.locator(".search-facts")).to_contain_text("all documents")
    expect(receipt.locator(".sum")).to_be_hidden()
    receipt.get_by_text("Passages from your documents").click()
    expect(receipt.locator(".part.of-passages .part-links a").first).to_contain_text("1. ")
    expect(receipt.locator(".left-out li")).to_have_text(["Turn 1: over the turn limit (2 messages)"])
    receipt.locator(".left-out").get_by_role("link", name="Turn 1").click()
    expect(page).to_have_url(re.compile("#turn-1$"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    receipt.get_by_role("link", name="Copy as curl").click()
    expect(page.locator(".toast").last).to_contain_text("Command copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"curl '{stub.url}/chat/completions'")
    assert json.loads(copied.split("<<'JSON'\n")[1].removesuffix("\nJSON\n"))["messages"] == stub.requests[-1].messages
