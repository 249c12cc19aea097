"""Questions about a part of the library: kept with the conversation, shown at the composer, taken away in place."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.shelf import FACT, upload
from tests.browser.talk import ask
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


@pytest.mark.shared
def test_a_document_is_asked_about_until_its_label_is_taken_away(page: Page, server: ServerProcess) -> None:
    documents = server.call("GET", "/api/documents")[1]["documents"]
    [document_id] = [one["document_id"] for one in documents if one["name"] == "3-documents.md"]
    page.goto(f"/?documents={document_id}")
    first = ask(page, "How large may a document be?", 1)
    expect(first.locator(".mark")).to_have_text("Filter: 3-documents.md.")
    page.reload()
    expect(page.locator("#scope")).to_contain_text("Filter: 3-documents.md")
    page.get_by_label("Your question").fill("How many earlier turns")
    page.get_by_label("Remove filter").click()
    expect(page.locator("#scope .scope")).to_have_count(0)
    expect(page.get_by_label("Your question")).to_have_value("How many earlier turns")
    address = f"/api/conversations/{page.url.rsplit('/', 1)[1]}"
    assert server.call("GET", address)[1]["scope"] is None
    second = ask(page, "How many earlier turns does the model see?", 2)
    expect(second.locator(".mark")).to_have_count(0)
    expect(second.locator(".sources").get_by_text("2-history-window.md").first).to_be_attached()


@pytest.mark.shared
def test_at_offers_documents_to_ask_only_these(page: Page, server: ServerProcess) -> None:
    page.goto("/")
    box = page.get_by_label("Your question")
    choices = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    for typed, filter_words in (
        ("@3-doc", "3-documents.md"),
        ("And @2-hist", "3-documents.md and 2-history-window.md"),
    ):
        box.press_sequentially(typed)
        expect(choices.filter(visible=True)).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator("#scope")).to_contain_text(filter_words)
        expect(box).to_have_value(typed.partition("@")[0])
        expect(box).to_be_focused()
        box.fill("")
    turn = ask(page, "How large may a document be?", 1)
    expect(turn.locator(".mark")).to_have_text("Filter: 3-documents.md and 2-history-window.md.")


def test_documents_are_filtered_by_date(page: Page, server: ServerProcess) -> None:
    for year in (2021, 2024):
        upload(server, f"geese-{year}.txt", f"Valid from: {year}-06-01\n\n{FACT}")
    page.goto("/")
    page.get_by_text("Filter by date").click()
    page.get_by_label("Documents dated from").fill("2024-01-01")
    page.get_by_label("until").fill("2024-12-31")
    page.get_by_role("button", name="Apply").click()
    turn = ask(page, "How many geese live there?", 1)
    expect(turn.locator(".mark")).to_contain_text("Filter: documents dated")
    expect(turn.locator(".sources")).to_contain_text("geese-2024.txt")
    expect(turn.locator(".sources")).not_to_contain_text("geese-2021.txt")
    page.reload()
    page.get_by_label("Remove filter").click()
    expect(page.locator("#scope .scope")).to_have_count(0)


def test_a_tag_is_asked_about(page: Page, server: ServerProcess) -> None:
    upload(server, "geese.txt", FACT, tags="birds")
    page.goto("/documents?tag=birds")
    page.get_by_role("link", name="Ask about these").click()
    expect(page.get_by_role("heading", name="Ask about documents tagged birds")).to_be_visible()
    turn = ask(page, "How many geese does the lighthouse keeper feed?", 1)
    expect(turn.locator(".mark")).to_have_text("Filter: documents tagged birds.")
    expect(turn.locator(".sources li")).to_have_count(1)


def test_a_document_is_asked_about_from_its_page(page: Page, server: ServerProcess) -> None:
    upload(server, "geese.txt", FACT)
    page.goto("/documents")
    page.get_by_role("link", name="geese.txt").click()
    page.get_by_role("link", name="Ask about this").click()
    expect(page.locator("#scope")).to_contain_text("Filter: geese.txt")
    page.get_by_role("link", name="Remove filter").click()
    expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Ask about this").click()
    turn = ask(page, "How many geese?", 1)
    expect(turn.locator(".mark")).to_have_text("Filter: geese.txt.")
    expect(turn.locator(".support")).to_have_text("No sources cited. Passages provided:")


def test_a_document_in_the_drawer_is_asked_about_in_the_open_conversation(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("Seventeen [1].")
    upload(server, "geese.txt", FACT)
    page.goto("/")
    turn = ask(page, "How many geese does the lighthouse keeper feed?", 1)
    turn.locator(".cited .chip").click()
    page.locator("#drawer").get_by_role("link", name="Ask about this").click()
    expect(page.locator("#scope")).to_contain_text("Filter: geese.txt")
    expect(page.locator(".toast")).to_have_text("Filter applied: geese.txt.")
    expect(page).to_have_url(re.compile(r"/conversations/1$"))
    expect(ask(page, "And how many geese now?", 2).locator(".mark")).to_have_text("Filter: geese.txt.")
