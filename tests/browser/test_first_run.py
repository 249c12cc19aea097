"""The first minutes: an empty library, no model, and examples that are answered with quotes from the guide."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from rag_assistant.web.pages.history import EXAMPLES
from tests.browser.talk import ask_many
from tests.browser.used_window import UsedWindow
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel


@pytest.fixture
def newcomer(tmp_path: Path, server_fork: ServerFork, port: int, used_window: UsedWindow) -> Iterator[Page]:
    """A page of a server that nobody has set up: no model is connected."""
    server = ServerProcess(tmp_path, server_fork.launch, PORT=str(port))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        server.environment.pop(name, None)
    server.start("/readyz")
    server.wait_for_documents()
    yield used_window.context.new_page()
    used_window.empty()
    server.kill()


def test_without_a_model_the_page_says_so_and_what_connects_one_is_copied_and_tested_as_soon_as_it_is_saved(
    newcomer: Page, tmp_path: Path, stub: StubModel
) -> None:
    newcomer.goto("/")
    note = newcomer.locator(".notice-quotes")
    expect(note).to_contain_text("No model is connected: answers are quotes. Connect a model")
    note.get_by_role("link").click()
    expect(newcomer.locator("#drawer #setting-openai_base_url")).to_be_visible()
    note.get_by_role("button", name="Dismiss").click()
    expect(note).to_have_count(0)
    newcomer.goto("/documents")
    expect(newcomer.get_by_role("heading", name="Documents")).to_be_visible()
    expect(note).to_have_count(0)

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
    expect(newcomer.locator("#setting-openai_base_url .value")).to_contain_text(":11434")
    (tmp_path / "settings.json").write_text(json.dumps({"openai_base_url": stub.url}))
    expect(connect).to_contain_text(f"Questions go to {stub.url}")
    connect.get_by_role("button", name="Test connection").click()
    result = connect.get_by_role("status")
    expect(result).to_contain_text("stub-model answered.")
    (tmp_path / "settings.json").write_text(json.dumps({"openai_base_url": stub.url, "openai_api_key": "sk-new"}))
    expect(result).to_be_empty()
    expect(connect.get_by_role("button", name="Test connection")).to_be_focused()


def test_without_a_model_an_example_is_answered_with_a_quote(newcomer: Page) -> None:
    newcomer.goto("/")
    newcomer.get_by_role("button", name=EXAMPLES[2]).click()
    expect(newcomer.locator("#turn-1.completed .answer blockquote")).to_contain_text("50 MB")


@pytest.mark.long
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
    expect(welcome).to_contain_text("You are talking to an AI assistant.")
    expect(welcome).to_contain_text("A guide to this assistant is already in your library.")
    text = b"## How many geese are there?\n\nThe keeper feeds seventeen geese, and each of them is in the book."
    geese = FilePayload(name="geese.md", mimeType="text/markdown", buffer=text)
    welcome.get_by_label("Add documents").focus()
    welcome.get_by_label("Add documents").set_input_files(geese)
    example = welcome.get_by_role("button", name="How many geese are there?")
    expect(example).to_be_visible()
    expect(welcome).not_to_contain_text("guide")
    expect(welcome.get_by_label("Add documents")).to_be_focused()
    example.click()
    expect(page.locator("#turn-1.completed .sources")).to_contain_text("geese.md")


@pytest.mark.long
def test_a_connected_model_has_no_note(page: Page) -> None:
    ask_many(page, 1)
    expect(page.locator(".notice-quotes")).to_have_count(0)
