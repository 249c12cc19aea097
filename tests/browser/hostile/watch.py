"""Notices what a text must not do to a page: run, ask, call another host, or become an element of it."""

import re
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page

# Reads the page as it stands: what no text may bring in. `own` are the elements that our templates and scripts make.
INSPECT = r"""
(own) => {
    const wrong = [];
    const urls = "href src action formaction data poster background ping srcset xlink:href".split(" ");
    const holders = [document, ...[...document.querySelectorAll("template")].map((one) => one.content)];
    for (const element of holders.flatMap((holder) => [...holder.querySelectorAll("*")])) {
        const tag = element.localName;
        if (!own.includes(tag)) wrong.push(`<${tag}>`);
        if (tag === "script" && !element.src) wrong.push("<script> without an address");
        if (tag === "meta" && element.httpEquiv) wrong.push(`<meta http-equiv=${element.httpEquiv}>`);
        for (const name of element.getAttributeNames()) {
            const value = element.getAttribute(name);
            if (/^on/i.test(name) || name === "srcdoc") wrong.push(`<${tag} ${name}>`);
            if (!urls.includes(name) || value === "") continue;
            const url = new URL(value, location.href);
            const said = element.closest(".answer, .summary") !== null;
            const link = tag === "a" && name === "href";
            const harmless = ["http:", "https:", "mailto:"].includes(url.protocol);
            const nofollow = (element.getAttribute("rel") ?? "").includes("noopener");
            if (url.origin !== location.origin && !(link && harmless && (!said || nofollow))) {
                wrong.push(`<${tag} ${name}="${value.slice(0, 80)}">`);
            }
        }
        const named = element.hasAttribute("id") || element.hasAttribute("name");
        if (element.parentElement?.closest(".answer") && named) wrong.push(`name in an answer: <${tag}>`);
    }
    return [...new Set(wrong)];
}
"""


class Elsewhere:
    """A place that every other host name leads to. It counts who comes, by whatever protocol."""

    def __init__(self) -> None:
        self.visits = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                return
            self.visits += 1
            visitor.close()

    def close(self) -> None:
        """Stop counting."""
        # Closing alone would leave a thread waiting in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@dataclass
class Watch:
    """What happened in the pages of a context since it was made."""

    context: BrowserContext
    elsewhere: Elsewhere
    hits: set[int] = field(default_factory=set)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    _visits_before: int = 0

    def __post_init__(self) -> None:
        self._visits_before = self.elsewhere.visits
        self.context.expose_function("__hit", lambda number=-1: self.hits.add(number))
        self.context.on("page", self._listen)

    def _listen(self, page: Page) -> None:
        page.on("dialog", self._note_dialog)
        page.on("console", self._note_report)

    def _note_dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _note_report(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.reports.append(message.text)

    @property
    def visits(self) -> int:
        """How many connections to another host there were."""
        return self.elsewhere.visits - self._visits_before

    @property
    def trouble(self) -> dict[str, Any]:
        """What must not have happened; empty if nothing did."""
        found = {"hits": sorted(self.hits), "dialogs": self.dialogs, "visits": self.visits}
        return {name: value for name, value in found.items() if value}


def shown(content: str) -> dict[str, set[int]]:
    """Return of which place which payloads stand on a page."""
    found: dict[str, set[int]] = {}
    for number, place in re.findall(r"end(\d+)([a-z]+)", content):
        found.setdefault(place, set()).add(int(number))
    return found
