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


SUMMARY = (
    "The user asked which documents can be added (text, Markdown, HTML, PDF, DOCX), how large one may be (50 MB), how "
    "a backup is made (stop the server, copy the folder data), and what happens if settings.json is broken."
)


def main() -> None:
    """Talk to a server of its own and take each picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stub = StubModel()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = ServerProcess(
            Path(folder), OPENAI_BASE_URL=stub.url, OPENAI_MODEL="your-model", FOLLOW_UPS="words", MAX_HISTORY_TURNS="2"
        )
        server.start("/readyz")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            page = browser.new_page(base_url=server.url, viewport={"width": 1200, "height": 1000})
            talk(page, stub)
            page.screenshot(path=FOLDER / "conversation.png")
            page.locator("#turn-6 .answer a", has_text="[1]").first.click()
            expect(page.locator("#drawer mark#passage")).to_be_in_viewport()
            page.screenshot(path=FOLDER / "source.png")
            page.keyboard.press("Escape")
            overflow(page, stub)
        finally:
            browser.close()
            server.kill()
            stub.close()


def overflow(page: Page, stub: StubModel) -> None:
    """Run into the limit with a conversation that asks first, and let the model summarise."""
    page.request.patch("/api/conversations/1", data={"on_overflow": "ask"})
    page.get_by_label("Your question").fill("And what stands in the receipt?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.screenshot(path=FOLDER / "overflow.png")
    stub.replies.append(Reply(SUMMARY))
    stub.default = Reply("The exact messages, and every turn that was left out with its reason [1].")
    page.get_by_role("button", name="Summarise the older turns").click()
    expect(page.locator("#turn-7.completed")).to_be_visible()
    page.get_by_text("Read it").click()
    page.locator(".summary").scroll_into_view_if_needed()
    page.screenshot(path=FOLDER / "summary.png")


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
