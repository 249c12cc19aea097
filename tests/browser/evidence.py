"""What a browser test leaves behind when it fails: a picture of every open page, and what its console said."""

import contextlib
from pathlib import Path

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page


class Evidence:
    """Listens to the pages of a context for as long as a test takes."""

    def __init__(self, context: BrowserContext, folder: Path) -> None:
        self._folder = folder
        self._context = context
        self._said: list[str] = []
        context.on("page", self._listen)

    def stop(self) -> None:
        """Listen no more: the pages to come are another test's."""
        self._context.remove_listener("page", self._listen)

    def _listen(self, page: Page) -> None:
        page.on("console", self._note)
        page.on("pageerror", lambda error: self._said.append(f"error: {error}"))

    def _note(self, message: ConsoleMessage) -> None:
        self._said.append(f"{message.type}: {message.text}")

    def keep(self) -> Path:
        """Write what there is to see into the folder, and return it."""
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "console.txt").write_text("\n".join(self._said) + "\n")
        for number, page in enumerate(self._context.pages, 1):
            # A page that hangs or has crashed has no picture; the test's own failure is what counts.
            with contextlib.suppress(Error):
                page.screenshot(path=folder / f"page-{number}.png", timeout=5_000)
                (folder / f"page-{number}.html").write_text(page.content())
        return folder
