"""Documents sought by name or tag, and several of them ticked: asked about, tagged, deleted."""

import re

from playwright.sync_api import Page, expect

from tests.browser.shelf import FACT, upload
from tests.browser.talk import ask
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

NAMES = ("1-first-steps.md", "2-history-window.md", "8-the-page.md")


def names(page: Page) -> list[str]:
    return page.locator("#library .name > a").all_inner_texts()


def test_documents_are_found_as_one_types_and_the_address_keeps_it(page: Page, server: ServerProcess) -> None:
    for name in NAMES:
        upload(server, name, FACT + name)
    page.goto("/documents")
    field, found = page.get_by_label("Search documents by name or tag"), page.locator("#library .name > a")
    field.press_sequentially("wind")
    expect(found).to_have_text(["2-history-window.md"])
    expect(field).to_be_focused()
    expect(page).to_have_url(re.compile(r"/documents\?q=wind$"))
    field.fill("md first")
    expect(found).to_have_text(["1-first-steps.md"])
    page.reload()
    expect(found).to_have_text(["1-first-steps.md"])


def test_what_was_found_is_sorted_in_place(page: Page, server: ServerProcess) -> None:
    for name in NAMES:
        upload(server, name, FACT + name)
    page.goto("/documents?q=md")
    first = page.locator("#library .name > a").first
    expect(first).to_have_text("8-the-page.md")
    page.get_by_role("link", name="Name", exact=True).click()
    expect(page).to_have_url(re.compile(r"/documents\?q=md&sort=name$"))
    expect(first).to_have_text("1-first-steps.md")
    expect(page.locator("#drawer")).to_be_hidden()


def test_several_documents_are_asked_about(page: Page, server: ServerProcess, stub: StubModel) -> None:
    stub.default = Reply("Seventeen [1].")
    upload(server, "broken.pdf", b"%PDF-1.4 and nothing more", wait=False)
    upload(server, "geese.txt", FACT)
    upload(server, "gulls.txt", "Gulls steal bread.")
    page.goto("/documents?state=failed")
    bar = page.get_by_role("form", name="Actions for selected documents")
    page.get_by_label("Select broken.pdf").check()
    expect(bar).to_contain_text("1 selected, 1 can")
    expect(bar.get_by_role("button", name="Ask about")).to_have_count(0)
    page.goto("/documents")
    expect(bar).to_be_hidden()
    page.get_by_label("Select geese.txt").check()
    expect(bar).to_contain_text("1 selected")
    page.get_by_label("Select gulls.txt").check()
    bar.get_by_role("button", name="Ask about these 2").click()
    expect(page.locator("#scope")).to_contain_text("Filter: gulls.txt and geese.txt")
    turn = ask(page, "How many geese does the lighthouse keeper feed?", 1)
    expect(turn.locator(".mark")).to_have_text("Filter: gulls.txt and geese.txt.")


def test_several_documents_are_tagged_and_deleted_after_a_second_look(page: Page, server: ServerProcess) -> None:
    for name in ("geese.txt", "gulls.txt"):
        upload(server, name, f"What stands in {name}.", tags="birds")
    page.goto("/documents?tag=birds")
    for name in ("geese.txt", "gulls.txt"):
        page.get_by_label(f"Select {name}").check()
    bar = page.get_by_role("form", name="Actions for selected documents")
    bar.get_by_text("Tag", exact=True).click()
    bar.get_by_label("Tags to add, separated by commas").fill("sea")
    bar.get_by_role("button", name="Add tags").click()
    expect(page.locator("#library .tag")).to_have_text(["birds", "sea"] * 2)
    expect(bar).to_contain_text("2 selected")
    bar.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#library")).to_have_text("No documents tagged “birds”.")
    expect(bar).to_have_count(0)
    assert server.call("GET", "/api/documents?tag=birds")[1]["documents"] == []


def test_what_is_ticked_stays_ticked_while_the_list_is_drawn_anew(page: Page, server: ServerProcess) -> None:
    upload(server, "geese.txt", FACT)
    page.goto("/documents")
    page.get_by_label("Select geese.txt").check()
    sent = {"name": "gulls.txt", "mimeType": "text/plain", "buffer": b"Gulls steal bread."}
    page.get_by_label("Add documents").set_input_files(sent)  # type: ignore[arg-type]
    expect(page.locator("#library .name > a").first).to_have_text("gulls.txt")
    expect(page.get_by_label("Select geese.txt")).to_be_checked()
    page.get_by_role("button", name="Clear selection").click()
    expect(page.get_by_label("Select geese.txt")).not_to_be_checked()
    expect(page.get_by_role("form", name="Actions for selected documents")).to_be_hidden()
