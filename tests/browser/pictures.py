"""Take the pictures of README.md: ``make pictures``. The page is real, what the model says in it is scripted."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.server_process import PROJECT, ServerProcess
from tests.stub_model import Reply, StubModel

FOLDER = PROJECT / "docs" / "pictures"
TALK = [
    ("Which kinds of documents can I add?", "Text, **Markdown, HTML, PDF and DOCX** [1]."),
    ("How large may one be?", "Up to **50 MB** [1]; `max_upload_mb` changes that."),
    ("How do I make a backup?", "Stop the server and copy the folder `data` [1]."),
    ("What if settings.json is broken?", "The last good values stay in force, and the page names the line [1]."),
    ("Can I give the model more of the conversation?", "Yes: set `max_history_turns` in `settings.json` [1]."),
    (
        "What happens to older turns of a conversation?",
        "They are **never deleted** [1]. Whenever older turns are left out,\n\n"
        "- the model gets a short notice,\n- the API says `history_trimmed: true`,\n- and you see it below the answer.",
    ),
]


def main() -> None:
    """Talk to a server of its own and take each picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stub = StubModel()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = ServerProcess(Path(folder), OPENAI_BASE_URL=stub.url, OPENAI_MODEL="your-model", MAX_HISTORY_TURNS="2")
        server.start("/readyz")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            page = browser.new_page(base_url=server.url, viewport={"width": 1200, "height": 1000})
            talk(page, stub)
            page.screenshot(path=FOLDER / "conversation.png")
            page.locator("#turn-6 .answer a", has_text="[1]").first.click()
            expect(page.locator("#drawer mark#passage")).to_be_in_viewport()
            page.screenshot(path=FOLDER / "source.png")
        finally:
            browser.close()
            server.kill()
            stub.close()


def talk(page: Page, stub: StubModel) -> None:
    """Ask every question of the talk and wait for its answer."""
    page.goto("/")
    for number, (question, answer) in enumerate(TALK, 1):
        stub.default = Reply(answer)
        page.get_by_label("Your question").fill(question)
        page.keyboard.press("Enter")
        expect(page.locator(f"#turn-{number}.completed")).to_be_visible()


if __name__ == "__main__":
    main()
