"""Every view of the page, by name: how to come to it in a conversation that has a bit of everything.

A new view is one more line in ``VIEWS``. Whoever goes through them (axe, the pictures) misses none.
"""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.talk import ask, call, options, say
from tests.server_process import ServerProcess
from tests.stub_model import Reply, StubModel

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"
ANSWER = f"## What it sees\n\nThe newest **turns** [1]:\n\n{TABLE}\n\n```python\nprint(1)\n```\n\n- one\n- two"

View = Callable[[Page], None]


def prepare(page: Page, stub: StubModel, server: ServerProcess) -> None:
    """Make conversation 1: sources, a tool step, a trimmed window, a summary and a failed answer; and one deleted."""
    stub.replies.extend(
        [
            Reply(tool_calls=[call("search_documents", query="How many earlier turns does the model see?")]),
            Reply(ANSWER),
        ]
    )
    page.goto("/")
    ask(page, "How many earlier turns does the model see?", 1)
    for number in range(2, 5):
        server.call("POST", "/api/query", {"question": f"Question {number}", "conversation_id": 1})
    stub.default = Reply("They talked about turns.")
    server.call("POST", "/api/conversations/1/compact")
    stub.default = Reply()
    for number in range(5, 8):
        server.call("POST", "/api/query", {"question": f"Question {number}", "conversation_id": 1})
    stub.replies.append(Reply(status=401))
    server.call("POST", "/api/query", {"question": "And now?", "conversation_id": 1})
    stub.replies.clear()
    other = server.call("POST", "/api/query", {"question": "Another conversation"})[1]["conversation_id"]
    server.call("DELETE", f"/api/conversations/{other}")
    server.call("POST", "/api/query", {"question": "Yet another conversation"})


def opened(path: str) -> View:
    """Return the view of an address."""

    def show(page: Page) -> None:
        page.goto(path)

    return show


def drawer(name: str) -> View:
    """Return the view of what a link of the first turn opens in the drawer."""

    def show(page: Page) -> None:
        page.goto("/conversations/1")
        page.locator(f"#turn-1 {name}").first.click()
        expect(page.get_by_role("complementary", name="Details")).to_be_visible()
        expect(page.locator("#drawer h2, #drawer h1").first).to_be_visible()

    return show


def with_options(page: Page) -> None:
    """Show the options of a conversation."""
    page.goto("/conversations/1")
    options(page)


def everything_unfolded(page: Page) -> None:
    """Show what is folded away: steps, sources, the summary, every menu."""
    page.goto("/conversations/1")
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")


def overflow(page: Page) -> None:
    """Show the dialog that asks what to do when the window is full."""
    page.request.patch("/api/conversations/1", data={"on_overflow": "ask"})
    page.goto("/conversations/1")
    say(page, "And this?")
    expect(page.get_by_role("dialog")).to_be_visible()


def completion(page: Page) -> None:
    """Show the commands while one is being typed."""
    page.goto("/conversations/1")
    page.get_by_label("Your question").press_sequentially("/")


VIEWS: dict[str, View] = {
    "start": opened("/"),
    "conversation": opened("/conversations/1"),
    "unfolded": everything_unfolded,
    "options": with_options,
    "commands": completion,
    "search": opened("/?q=turns"),
    "source": drawer(".answer a >> text=[1]"),
    "receipt": drawer("a >> text=What the model saw"),
    "receipt page": opened("/turns/1/receipt"),
    "documents": opened("/documents"),
    "documents sought": opened("/documents?q=turns"),
    "document": opened("/documents/1"),
    "deleted": opened("/deleted"),
    "settings": opened("/settings"),
    "not there": opened("/conversations/999"),
    "overflow": overflow,
}
