"""The library as a person uses it: adding, watching, tagging, asking about a part, and opening what is cited."""

import re

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

from tests.browser.shelf import FACT, upload
from tests.browser.talk import ask
from tests.testkit.pdfs import new_pdf
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


def a_file(name: str, content: str | bytes) -> FilePayload:
    content = content.encode() if isinstance(content, str) else content
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def a_pdf_with_a_picture() -> bytes:
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    pdf.add_page()
    pdf.multi_cell(0, text="Boats. " * 150)
    pdf.add_page()
    pdf.rect(20, 20, 80, 80, style="F")
    pdf.add_page()
    pdf.multi_cell(0, text=FACT)
    return bytes(pdf.output())


def add(page: Page, *files: FilePayload, tags: str = "") -> None:
    """Add files by choosing them."""
    page.locator(".add > summary").click()
    page.get_by_label("Tags (optional)").fill(tags)
    page.get_by_label("Add documents").set_input_files(list(files))


def more(row: Locator) -> Locator:
    """Open the menu of a row and return it."""
    row.locator(".menu > .more > summary").click()
    return row.locator(".menu .panel")


def row(page: Page, name: str) -> Locator:
    return page.locator("#library tr", has=page.get_by_role("link", name=name, exact=True))


def ready(page: Page, *names: str) -> None:
    for name in names:
        expect(row(page, name).locator(".document-state")).to_have_text("ready")


@pytest.mark.settings(EMBEDDER="endpoint:e")
def test_work_is_shown_cancelled_and_taken_up_again_in_place(page: Page, stub: StubModel) -> None:
    stub.embedding_replies.extend(Reply(status=503) for _ in range(100))
    page.goto("/documents")
    add(page, a_file("geese.txt", FACT))
    geese = row(page, "geese.txt")
    expect(geese.get_by_role("progressbar")).to_be_visible()
    expect(geese).to_contain_text("searchable by keyword; indexing 0 of 1")
    expect(geese.locator(".reason")).to_contain_text("Trying again in")
    more(geese)
    tags = geese.get_by_label("Tags, separated by commas")
    tags.fill("half typ")
    for _ in range(2):  # The second look begins when the first has been taken in.
        page.wait_for_event("requestfinished", lambda sent: "/documents" in sent.url)
    expect(tags).to_have_value("half typ")
    expect(tags).to_be_focused()
    page.keyboard.press("Escape")
    expect(tags).to_be_hidden()
    geese.get_by_role("button", name="Cancel").click()
    expect(geese.locator(".document-state")).to_have_text("cancelled")
    expect(geese.get_by_role("link", name="geese.txt")).to_be_focused()
    expect(geese.get_by_role("button", name="Cancel")).to_have_count(0)
    stub.embedding_replies.clear()
    geese.get_by_role("button", name="Retry").click()
    ready(page, "geese.txt")
    expect(geese.get_by_role("button", name="Retry")).to_have_count(0)
    assert page.url.endswith("/documents")


def test_a_document_is_processed_anew_and_deleted_in_place(page: Page, server: ServerProcess) -> None:
    upload(server, "geese.txt", FACT)
    page.goto("/documents")
    geese = row(page, "geese.txt")
    more(geese)
    geese.get_by_role("button", name="Reprocess").click()
    expect(geese.get_by_role("button", name="Reprocess")).to_be_hidden()
    ready(page, "geese.txt")
    more(geese).get_by_role("button", name="Delete", exact=True).click()
    expect(geese).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(geese).to_have_count(1)
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert page.url.endswith("/documents")


def test_what_could_not_be_read_is_said_in_words(page: Page) -> None:
    page.goto("/documents")
    add(page, a_file("geese.pdf", a_pdf_with_a_picture()), a_file("blank.txt", " \n "))
    ready(page, "geese.pdf")
    geese, blank = row(page, "geese.pdf"), row(page, "blank.txt")
    expect(blank).to_have_count(0)
    expect(geese.locator(".kind")).to_have_text("PDF, 3 pages")
    expect(geese.locator(".reason.warned")).to_contain_text("Warning: Page 2 of 3 holds no readable text")
    page.get_by_role("link", name="1 could not be read").click()
    expect(blank.locator(".reason")).to_have_text("There is no text in this file.")
    expect(blank.get_by_role("button", name="Retry")).to_have_count(0)
    page.get_by_role("link", name="All 1").click()
    geese.get_by_role("link", name="geese.pdf").click()
    expect(page.locator(".document header")).to_contain_text("Warning: Page 2 of 3 holds no readable text")


def test_tags_filter_the_list_and_are_edited_in_place(page: Page, server: ServerProcess) -> None:
    upload(server, "geese.txt", FACT, tags="birds", wait=False)
    upload(server, "gulls.txt", "Gulls steal bread.", tags="birds")
    page.goto("/documents")
    row(page, "geese.txt").get_by_role("link", name="birds").click()
    expect(page).to_have_url(re.compile(r"/documents\?tag=birds$"))
    expect(page.locator("#library .name > a")).to_have_count(2)
    gulls = row(page, "gulls.txt")
    more(gulls)
    gulls.get_by_label("Tags, separated by commas").fill("thieves")
    gulls.get_by_role("button", name="Save").click()
    expect(page.locator("#library .name > a")).to_have_text(["geese.txt"])
    expect(page.get_by_role("navigation", name="Tags").get_by_role("link")).to_have_text(
        ["All documents", "birds 1", "thieves 1"]
    )
    geese = row(page, "geese.txt")
    more(geese)
    geese.get_by_label("Tags, separated by commas").fill("x" * 65)
    geese.get_by_role("button", name="Save").click()
    expect(page.locator(".toast.bad")).to_contain_text("each of 1 to 64 characters, separated by commas.")
    expect(geese.get_by_label("Tags, separated by commas")).to_have_value("x" * 65)


def test_a_document_is_renamed_in_place_and_moves_to_where_it_belongs(page: Page) -> None:
    page.goto("/documents?sort=name&q=.txt")
    add(page, a_file("gulls.txt", "Gulls steal bread."), a_file("geese.txt", FACT))
    ready(page, "geese.txt", "gulls.txt")
    names = page.locator("#library .name > a")
    expect(names).to_have_text(["geese.txt", "gulls.txt"])
    more(row(page, "geese.txt"))
    page.get_by_label("Name", exact=True).locator("visible=true").fill("swans.txt")
    page.keyboard.press("Enter")
    expect(names).to_have_text(["gulls.txt", "swans.txt"])
    expect(page.get_by_role("link", name="swans.txt", exact=True)).to_be_focused()
    page.get_by_role("link", name="Name", exact=True).click()
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "descending")
    expect(names).to_have_text(["swans.txt", "gulls.txt"])
    expect(page.locator(".figures p")).to_have_text("2 documents, 62 bytes")


def test_a_newer_version_takes_the_place_of_the_older_one(page: Page) -> None:
    page.goto("/documents")
    add(page, a_file("geese.txt", FACT))
    ready(page, "geese.txt")
    geese = row(page, "geese.txt")
    more(geese)
    geese.get_by_label("Newer version").set_input_files(a_file("new.txt", "The keeper feeds eighteen geese."))
    expect(geese.locator(".size")).to_have_text("32 bytes")
    expect(page.locator("#library tr", has_text="new.txt")).to_have_count(0)
    ready(page, "geese.txt")


def test_a_large_text_is_shown_around_its_passage_and_read_on(page: Page, server: ServerProcess) -> None:
    page.goto("/documents")
    text = "".join(f"Line {n} of the endless tale.\n" for n in range(20_000))
    add(page, a_file("tale.txt", text))
    tale = row(page, "tale.txt").get_by_role("link", name="tale.txt")
    expect(row(page, "tale.txt")).to_contain_text(re.compile("searchable by keyword|ready"))
    start = text.index("Line 10000 ")
    page.goto(f"{tale.get_attribute('href')}?start={start}&end={start + 30}#passage")
    assert page.locator("mark#passage").evaluate("mark => mark.textContent") == text[start : start + 30]
    expect(page.locator("mark#passage")).to_be_in_viewport()
    shown = page.locator("pre.text").evaluate("text => text.textContent")
    assert 40_030 <= len(shown) < 40_100
    assert shown.startswith("Line ")
    assert shown.endswith("tale.\n"), "whole lines"
    page.get_by_role("link", name="Later").click()
    expect(page.locator("#drawer pre.text, main pre.text").last).to_contain_text("Line 11000 ")


def test_nothing_found_is_said(page: Page) -> None:
    page.goto("/")
    turn = ask(page, "Xylophone quokka zymurgy?", 1)
    expect(turn.locator(".support")).to_have_text("Your library is empty; nothing was searched.")


def test_the_library_works_without_scripts(
    chromium_without_scripts: Browser, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("Seventeen.")
    page = chromium_without_scripts.new_context(base_url=server.url).new_page()
    page.set_default_timeout(10_000)
    page.goto("/documents")
    add(page, a_file("geese.txt", FACT), a_file("blank.txt", " "), a_file("program", b"\x7fELF\0"), tags="birds")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("2 of 3 files added.")
    while page.locator("#documents").get_attribute("data-busy") == "yes":
        page.goto("/documents")
    page.get_by_role("link", name="1 could not be read").click()
    expect(row(page, "blank.txt").locator(".document-state")).to_have_text("failed")
    page.get_by_role("link", name="All 1").click()
    expect(page).to_have_url(re.compile(r"/documents$"))
    geese = row(page, "geese.txt")
    more(geese)
    geese.get_by_label("Tags, separated by commas").fill("geese")
    geese.get_by_role("button", name="Save").click()
    expect(geese.locator(".tag")).to_have_text(["geese"])
    page.get_by_role("link", name="geese 1").click()
    page.get_by_role("link", name="Ask about these").click()
    page.get_by_label("Your question").fill("How many geese?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page).to_have_url(re.compile(r"/conversations/1#turn-1"))
    turn = page.locator("#turn-1.completed")
    expect(turn.locator(".mark")).to_have_text("Filter: documents tagged geese.")
    expect(turn.locator(".support")).to_have_text("No sources cited. Passages provided:")
    expect(page.locator("#scope")).to_contain_text("Filter: documents tagged geese")
    turn.locator(".sources a").first.click()
    expect(page.locator("mark#passage")).to_have_text(FACT)
    page.goto("/documents?q=gees")
    expect(page.locator("#library .name > a")).to_have_text(["geese.txt"])
    page.get_by_label("Select geese.txt").check()
    page.locator("#selected").get_by_text("Delete", exact=True).click()
    expect(page.locator("#library")).to_contain_text("No documents match “gees”.")
    page.context.close()
