"""The first minutes: an empty library, the built-in model, and examples that it really answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from rag_assistant.web.pages.history import EXAMPLES
from testkit.server_process import ServerProcess
from tests.browser.talk import ask_many

FACTS = {EXAMPLES[0]: "5", EXAMPLES[1]: "PDF", EXAMPLES[2]: "50 MB"}


@pytest.fixture
def newcomer(tmp_path: Path, chromium: Browser) -> Iterator[Page]:
    """A page of a server that nobody has set up: the built-in model answers."""
    server = ServerProcess(tmp_path)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        server.environment.pop(name, None)
    server.start("/readyz")
    context = chromium.new_context(base_url=server.url)
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()
    server.kill()


@pytest.mark.model
def test_the_built_in_model_answers_the_examples_from_the_guide(newcomer: Page) -> None:
    for example, fact in FACTS.items():
        newcomer.goto("/")
        newcomer.get_by_role("button", name=example).click()
        turn = newcomer.locator("#turn-1.completed")
        expect(turn).to_be_visible(timeout=60_000)
        expect(turn.locator(".answer")).to_contain_text(fact)


@pytest.mark.model
def test_the_note_about_the_built_in_model_leads_to_a_better_one_and_is_put_away_for_good(newcomer: Page) -> None:
    newcomer.goto("/")
    note = newcomer.locator(".notice-built-in")
    expect(note).to_contain_text("The small built-in model is answering, which is fine for a first try.")
    note.get_by_role("link").click()
    expect(newcomer.locator("#drawer #setting-openai_base_url")).to_be_visible()
    note.get_by_role("button", name="Dismiss").click()
    expect(note).to_have_count(0)
    newcomer.goto("/documents")
    expect(newcomer.get_by_role("heading", name="Documents")).to_be_visible()
    expect(note).to_have_count(0)


@pytest.mark.model
def test_what_connects_a_model_is_copied_and_goes_when_one_is_connected(newcomer: Page, tmp_path: Path) -> None:
    newcomer.goto("/settings?filter=openai")
    connect = newcomer.locator(".connect")
    newcomer.context.grant_permissions(["clipboard-read", "clipboard-write"])
    connect.get_by_role("button", name="Copy").first.click()
    expect(connect.get_by_role("button", name="Copied")).to_be_visible()
    copied = newcomer.evaluate("() => navigator.clipboard.readText()")
    newcomer.get_by_label("Search settings").fill("temperature")
    expect(connect).to_be_hidden()
    newcomer.get_by_label("Search settings").fill("openai")
    expect(connect).to_be_visible()
    (tmp_path / "settings.json").write_text(copied)
    expect(newcomer.locator("#setting-openai_base_url .value")).to_contain_text("localhost:11434")
    expect(connect).to_be_hidden()


def test_an_empty_library_says_what_to_do_and_shows_no_examples(page: Page, server: ServerProcess) -> None:
    page.goto("/")
    expect(page.locator(".examples button")).to_have_text(list(EXAMPLES))
    for document in server.call("GET", "/api/documents")[1]["documents"]:
        server.call("DELETE", f"/api/documents/{document['document_id']}")
    page.reload()
    expect(page.get_by_role("heading", name="Add your documents")).to_be_visible()
    expect(page.locator(".welcome")).to_contain_text("Your library is empty. Add documents to ask about.")
    expect(page.locator(".examples")).to_have_count(0)


def test_the_first_page_takes_documents_and_then_asks_about_them(page: Page) -> None:
    page.goto("/")
    welcome = page.locator(".welcome")
    expect(welcome).to_contain_text("A guide to this assistant is already in your library.")
    geese = FilePayload(name="geese.txt", mimeType="text/plain", buffer=b"The keeper feeds seventeen geese.")
    welcome.get_by_label("Add documents").focus()
    welcome.get_by_label("Add documents").set_input_files(geese)
    about = welcome.get_by_role("link", name="Ask about geese.txt")
    expect(about).to_be_visible(timeout=30_000)
    expect(welcome).not_to_contain_text("guide")
    expect(welcome.get_by_label("Add documents")).to_be_focused()
    about.click()
    expect(page.get_by_role("heading", name="Ask about geese.txt")).to_be_visible()


def test_a_connected_model_has_no_note(page: Page) -> None:
    ask_many(page, 1)
    expect(page.locator(".notice-built-in")).to_have_count(0)
