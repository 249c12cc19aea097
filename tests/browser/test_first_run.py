"""The first minutes: an empty library, no model, and examples that are answered with quotes from the guide."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from rag_assistant.web.pages.history import EXAMPLES
from tests.browser.talk import ask_many, say
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


@pytest.mark.every_time
def test_without_a_model_the_page_says_so_and_connects_one(newcomer: Page, tmp_path: Path, stub: StubModel) -> None:
    newcomer.goto("/")
    note = newcomer.locator(".notice-quotes")
    expect(note).to_contain_text("No model is connected: answers are quotes. Connect a model")
    note.get_by_role("link").click()
    form = newcomer.locator("#drawer .connect")
    form.get_by_label("Address", exact=True).fill("http://127.0.0.1:1/v1")
    form.get_by_label("API key").fill("sk-typed")
    form.get_by_role("button", name="Test connection").click()
    expect(form.get_by_role("status")).to_contain_text("Failed:")
    expect(form.get_by_label("API key")).to_have_value("sk-typed")
    expect(note).to_have_count(1)
    form.get_by_label("Address", exact=True).fill(stub.url)
    form.get_by_role("button", name="Test connection").click()
    expect(form.get_by_role("status")).to_contain_text("stub-model answered.")
    expect(form.get_by_role("button", name="Test connection")).to_be_focused()
    form.get_by_role("button", name="Save", exact=True).click()
    expect(note).to_have_count(0)
    form.get_by_role("button", name="Test connection").click()
    expect(form.get_by_role("status")).to_contain_text("stub-model answered.")
    newcomer.wait_for_timeout(2500)  # The page looks after changes of the file every two seconds: this one is its own.
    expect(form.get_by_role("status")).to_contain_text("stub-model answered.")
    expect(newcomer.locator("#composer")).to_be_visible()
    form.get_by_label("How many earlier turns to send").fill("few")
    form.get_by_role("button", name="Save", exact=True).click()
    expect(form.get_by_role("alert")).to_contain_text('How many earlier turns to send is "few"')
    saved = json.loads((tmp_path / "settings.json").read_text())
    assert saved == {"openai_base_url": stub.url, "openai_api_key": "sk-typed"}
    (tmp_path / "settings.json").write_text(json.dumps(saved | {"openai_model": "other"}))
    expect(newcomer.locator("#drawer #setting-openai_model .value")).to_have_text("other")
    expect(form.get_by_label("How many earlier turns to send")).to_have_value("few")


def test_without_a_model_an_example_is_answered_with_a_quote(newcomer: Page) -> None:
    newcomer.goto("/")
    newcomer.get_by_role("button", name=EXAMPLES[2]).click()
    expect(newcomer.locator("#turn-1.completed .answer blockquote")).to_contain_text("50 MB")


def test_an_empty_library_says_what_to_do_and_shows_no_examples(page: Page, server: ServerProcess) -> None:
    page.goto("/")
    expect(page.locator(".chip-button")).to_have_text(list(EXAMPLES))
    for document in server.call("GET", "/api/documents")[1]["documents"]:
        server.call("DELETE", f"/api/documents/{document['document_id']}")
    page.reload()
    expect(page.get_by_role("heading", name="Add your documents")).to_be_visible()
    expect(page.locator(".offers")).to_contain_text("Nothing added yet")
    expect(page.locator(".chip-button")).to_have_count(0)


def test_the_first_page_takes_documents_and_then_asks_about_them(page: Page) -> None:
    page.goto("/")
    welcome = page.locator(".offers")
    expect(welcome).to_contain_text("You are talking to an AI assistant.")
    expect(welcome).to_contain_text("Or ask the guide to this assistant:")
    text = b"The keeper feeds seventeen geese, and each of them is in the book."
    geese = FilePayload(name="geese.md", mimeType="text/markdown", buffer=text)
    welcome.get_by_label("Add documents").focus()
    welcome.get_by_label("Add documents").set_input_files(geese)
    expect(welcome.locator(".recent li")).to_have_count(1)
    expect(welcome).not_to_contain_text("ask the guide")
    expect(welcome.get_by_label("Add documents")).to_be_focused()
    say(page, "How many geese are there?")
    expect(page.locator("#turn-1.completed .sources")).to_contain_text("geese.md")


def test_a_connected_model_has_no_note(page: Page) -> None:
    ask_many(page, 1)
    expect(page.locator(".notice-quotes")).to_have_count(0)
