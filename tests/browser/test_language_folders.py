"""Folders in other languages, chosen on the page: each question is answered there with the right sentence."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.talk import ask
from tests.testkit.server_process import ServerProcess

FOLDERS = Path(__file__).parents[1] / "web" / "folders"


@pytest.fixture
def server(tmp_path: Path, port: int) -> Iterator[ServerProcess]:
    """A server without a model, started as a person does: with the embedding model that the product has."""
    made = ServerProcess(tmp_path, PORT=str(port), OPENAI_BASE_URL="", OPENAI_MODEL="")
    made.start("/readyz")
    yield made
    made.kill()


@pytest.mark.long
@pytest.mark.parametrize("language", ["german", "hindi", "chinese"])
def test_a_folder_of_ten_documents_answers_ten_questions(
    page: Page, server: ServerProcess, tmp_path: Path, language: str
) -> None:
    written = json.loads((FOLDERS / f"{language}.json").read_text(encoding="utf-8"))
    folder = tmp_path / language
    folder.mkdir()
    for name, text in written["documents"].items():
        (folder / name).write_text(text, encoding="utf-8")
    page.goto("/documents")
    page.get_by_label("Add a folder").set_input_files(folder)
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("status")).to_have_text("10 files added")
    server.wait_for_documents()
    assert len(written["questions"]) == 10
    for question, (fact, document) in written["questions"].items():
        page.goto("/")
        turn = ask(page, question, 1)
        expect(turn.locator(".answer blockquote").first).to_be_visible()
        expect(turn.locator(".answer")).to_contain_text(fact)
        expect(turn.locator(".cited .chip").first).to_contain_text(document)
