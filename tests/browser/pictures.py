"""Take pictures of the page, which is real; what the model says in it is scripted.

``make pictures`` takes those of the documentation, ``python -m tests.browser.pictures FOLDER`` every view there is.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.story import QUESTIONS, fill_the_shelf
from tests.browser.talk import ask, say
from tests.browser.views import SETTINGS, VIEWS, prepare
from tests.testkit.server_process import PROJECT, ServerProcess, run_command
from tests.testkit.stub_model import Reply, StubModel

FOLDER = PROJECT / "docs" / "pictures"
WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOOKS = {"light": WIDE, "dark": WIDE | {"color_scheme": "dark"}, "phone": PHONE}


@contextmanager
def serving(**settings: str) -> Iterator[tuple[Browser, StubModel, ServerProcess]]:
    """Run a browser, a scripted model and a server that asks it."""
    stub = StubModel()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        own = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "your-model", "QUERY_REWRITING": "words"}
        server = ServerProcess(Path(folder), run_command, **own | settings)
        server.start("/readyz")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser, stub, server
        finally:
            browser.close()
            server.kill()
            stub.close()


def take_those_of_the_readme() -> None:
    """Talk about the documents of the story, and take a picture of what is new at each point."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with serving(MAX_HISTORY_TURNS="2", MODEL_CONTEXT_TOKENS="8192") as (browser, stub, server):
        fill_the_shelf(server)
        page = browser.new_page(base_url=server.url, viewport={"width": 1280, "height": 860})
        page.goto("/")
        last = page.locator(".turn").last
        for number, (question, answer) in enumerate(QUESTIONS.items(), 1):
            stub.default = Reply(answer)
            ask(page, question, number)
        expect(page.locator(".horizon .sentence")).to_contain_text(f"2 of {len(QUESTIONS)}")
        picture = _into(page, FOLDER)
        picture("conversation")
        last.locator(".answer a", has_text="[1]").first.click()
        expect(page.locator("#drawer .page-picture:not(.waiting) img")).to_be_visible()
        picture("source")
        last.locator(".seen").click()
        expect(page.get_by_role("heading", name="What the model saw")).to_be_visible()
        picture("receipt")
        page.keyboard.press("Escape")
        page.request.patch("/api/conversations/1", data={"on_overflow": "ask"})
        say(page, "And how many geese were there?")
        expect(page.get_by_role("dialog")).to_be_visible()
        picture("overflow")


def take_every_view(folder: Path) -> None:
    """Take each view in the light, in the dark and on a phone. A view that cannot be shown is said, and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for look, settings in LOOKS.items():
        with serving(**SETTINGS) as (browser, stub, server):
            prepare(stub, server)
            page = browser.new_context(base_url=server.url, reduced_motion="reduce", **settings).new_page()
            page.set_default_timeout(15_000)
            for name, show in VIEWS.items():
                try:
                    show(page, server)
                except (Error, AssertionError) as error:
                    print(f"{look}, {name}: {error}")
                _into(page, folder)(f"{name.replace(' ', '-')}-{look}")


def _into(page: Page, folder: Path) -> Callable[[str], bytes]:
    def take(name: str) -> bytes:
        # What was just drawn is on the screen two frames later.
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page.screenshot(path=folder / f"{name}.png")

    return take


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take_every_view(Path(sys.argv[1]))
    else:
        take_those_of_the_readme()
