"""Every view of the page, by name: how to come to it on a server where a bit of everything has happened.

A new view is one more line in ``VIEWS``. Whoever goes through them (axe, the pictures) misses none. They are shown in
this order: the last ones change what the earlier ones would show.
"""

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.shelf import upload
from tests.browser.story import QUESTIONS, fill_the_shelf
from tests.browser.talk import call, options, say, window
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

# What the server is told by its environment, so that every view can be shown.
SETTINGS = {
    "RETRIEVAL_MODE": "agent",
    "MAX_HISTORY_TURNS": "2",
    "EMBEDDER": "endpoint:e",
    "MODEL_CONTEXT_TOKENS": "8192",
    "MODEL_IMAGES": "true",
    "WEB_PAGES": "true",
}
LONG = (
    "## What was measured\n\nThe depth **rose** [1] [2] [3], see $d = 3 + 0.05 n$:\n\n| year | depth |\n|---|---|\n"
    "| 1996 | 3.30 m |\n| 1997 | 3.35 m |\n\n```python\nfor year in range(1990, 2008):\n    print(year)\n```\n\n"
    "> As his mother had done.\n\n- one\n- two"
)
SUMMARY = "They asked when the tower is open, what happens in a storm, and how the geese are counted."
TALK, SURE, WRITING = "/conversations/1", "/conversations/2", "/conversations/3"

View = Callable[[Page, ServerProcess], None]


def prepare(stub: StubModel, server: ServerProcess) -> None:
    """Fill the shelf and begin the conversations: one with a bit of everything, one that waits, one being answered."""
    shelf = fill_the_shelf(server)
    for question, answer in QUESTIONS.items():
        found = Reply(tool_calls=[call("search_documents", query=question)])
        stub.replies.extend([found, Reply(answer)])
        begun = {} if question == next(iter(QUESTIONS)) else {"conversation_id": 1}
        server.call("POST", "/api/query", {"question": question} | begun)
    stub.default = Reply(SUMMARY)
    server.call("POST", "/api/conversations/1/compact")
    stub.default = Reply("That stands in no document.")
    for question in ("Who likes cheese?", "And who likes bread?"):
        server.call("POST", "/api/query", {"question": question, "conversation_id": 1})
    measured = [Reply(tool_calls=[call("search_documents", query="depth 1997")]), Reply(LONG)]
    stub.replies.extend(measured * 2)
    _, last = server.call("POST", "/api/query", {"question": "What was measured in 1997?", "conversation_id": 1})
    server.call("POST", f"/api/turns/{last['turn_id']}/regenerate")
    server.follow(last["turn_id"], None).read()
    stub.replies.append(Reply(status=401))
    server.call("POST", "/api/query", {"question": "And now?", "conversation_id": 1})
    server.call("PUT", "/api/turns/1/rating", {"rating": "up"})
    server.call("PUT", "/api/turns/2/rating", {"rating": "down", "right_answer": "From ten to four."})
    server.call("PATCH", "/api/turns/6", {"pinned": True})
    server.call("PATCH", "/api/turns/7", {"excluded": True})
    stub.replies.append(Reply(tool_calls=[call("delete_documents", document_ids=[shelf["Berths 2025.csv"]])]))
    server.call("POST", "/api/query", {"question": "Delete the list of berths."})
    stub.replies.append(Reply("Wind and water. " * 300, seconds_between=1.0))
    server.stream("What is the lake like?").read(until_length=20).close()
    gone = server.call("POST", "/api/query", {"question": "Old plans for the boat house"})[1]["conversation_id"]
    server.call("DELETE", f"/api/conversations/{gone}")
    upload(server, "blank.txt", " \n", wait=False)
    stub.embedding_replies.extend(Reply(status=503) for _ in range(2000))
    upload(server, "Letters.txt", "Dear keeper, the geese are back.", wait=False)


def not_there(page: Page, _: ServerProcess) -> None:
    """Show the page of an error."""
    page.goto("/conversations/999")
    expect(page.locator("h1")).to_be_visible()


def opened(path: str, shown: str = "h1") -> View:
    """Return the view of an address."""

    def show(page: Page, _: ServerProcess) -> None:
        page.goto(path)
        expect(page.locator("html.scripted").locator(shown).first).to_be_attached()

    return show


def unscripted(path: str) -> View:
    """Return the view of an address without scripts."""

    def show(page: Page, _: ServerProcess) -> None:
        page.goto(path)
        expect(page.locator("h1").first).to_be_visible()

    return show


def in_talk(act: Callable[[Page], object]) -> View:
    """Return the view of the first conversation after one more thing was done."""

    def show(page: Page, _: ServerProcess) -> None:
        page.goto(TALK)
        expect(page.locator("html.scripted #turn-9")).to_be_visible()
        act(page)

    return show


def in_drawer(click: str) -> View:
    """Return the view of what a link of the first conversation opens in the drawer."""

    def act(page: Page) -> None:
        _reach_sidebar(page, click)
        page.locator(click).first.click()
        expect(page.get_by_role("complementary", name="Details")).to_be_visible()
        expect(page.locator("#drawer-content :is(h1, h2)").first).to_be_visible()

    return in_talk(act)


def _reach_sidebar(page: Page, wanted: str = "#sidebar") -> None:
    menu = page.get_by_role("button", name="Menu", exact=True)
    if "#sidebar" in wanted and menu.is_visible():
        menu.click()
        expect(page.locator("#sidebar")).to_be_visible()


def _page_picture(page: Page) -> None:
    page.locator('.turn .chip:has-text("page"):visible').first.click()
    expect(page.locator("#drawer .page-picture:not(.waiting) img")).to_be_visible()


def _unfold(page: Page) -> None:
    # The menus of the window and of the options lie over all else, and are views of their own.
    folded = page.locator("main details:not(#options, #window, .more)")
    folded.evaluate_all("all => all.forEach((one) => { one.open = true; })")


def _sidebar_menu(page: Page) -> None:
    _reach_sidebar(page)
    row = page.locator("#conversations .conversation").first
    row.hover()
    row.locator(".row-actions").click()
    expect(page.locator("#row-menu")).to_be_visible()


def _turn_menu(page: Page) -> None:
    turn = page.locator("#turn-8")
    turn.hover()
    turn.locator(".more > summary").click()
    expect(turn.locator(".menu-list")).to_be_visible()


def _edit(page: Page) -> None:
    page.locator("#turn-8").hover()
    page.locator("#turn-8").get_by_role("link", name="Edit the question").click()
    expect(page.locator(".edit-question")).to_be_visible()


def _gauge(page: Page) -> None:
    page.locator("#gauge button").focus()
    expect(page.locator("#gauge-figures")).to_be_visible()


def _commands(page: Page) -> None:
    page.get_by_label("Your question").press_sequentially("/")
    expect(page.locator("#commands")).to_be_visible()
    page.keyboard.press("ArrowDown")


def _overflow(page: Page) -> None:
    page.request.patch("/api/conversations/1", data={"on_overflow": "ask"})
    say(page, "And in 1998?")
    expect(page.get_by_role("dialog")).to_be_visible()


def _shortcuts(page: Page) -> None:
    page.get_by_label("Your question").blur()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def _result(page: Page) -> None:
    page.get_by_label("Your question").fill("/help")
    page.keyboard.press("Enter")
    expect(page.locator(".result:not(.waiting)")).to_be_visible()


def _search(page: Page) -> None:
    _reach_sidebar(page)
    page.get_by_label("Search conversations").fill("geese")
    expect(page.locator(".found")).to_be_visible()


def _document_row(page: Page) -> Locator:
    page.goto("/documents")
    return page.locator("#library tr", has=page.get_by_role("link", name="Lake report.pdf"))


def temporary(page: Page, _: ServerProcess) -> None:
    """Show a temporary conversation with a turn."""
    page.goto("/temporary")
    say(page, "When is the tower open?")
    expect(page.locator(".turn.completed")).to_be_visible()


def chosen_documents(page: Page, _: ServerProcess) -> None:
    """Show two documents ticked."""
    _document_row(page)
    for name in ("Lake report.pdf", "Berths 2025.csv"):
        page.get_by_label(f"Select {name}").check()
    expect(page.locator("#selected")).to_contain_text("2 selected")
    # From the top: no row is half below the bar.
    page.get_by_role("heading", name="Documents", exact=True).first.scroll_into_view_if_needed()


def document_menu(page: Page, _: ServerProcess) -> None:
    """Show what can be done with a document."""
    row = _document_row(page)
    row.locator(".menu .more > summary").click()
    expect(row.get_by_label("Tags, separated by commas")).to_be_visible()


def uploads(page: Page, _: ServerProcess) -> None:
    """Show files on their way into the library."""
    page.goto("/documents")
    files = {"storm.txt": b"Wind force nine.", "program": b"\x7fELF\0\0\0"}
    sent = [{"name": name, "mimeType": "text/plain", "buffer": content} for name, content in files.items()]
    page.get_by_label("Add documents").set_input_files(sent)  # type: ignore[arg-type]
    # The embedding model refuses, so that the other file stays on its way.
    page.get_by_text("1 failed").wait_for()
    page.locator(".uploads details").evaluate("(one) => { one.open = true; }")
    expect(page.locator(".uploads .failed .reason")).to_be_visible()


def settings(page: Page, _: ServerProcess) -> None:
    """Show settings that match a word, each with its form."""
    page.goto("/settings?filter=history")
    expect(page.locator(".setting").first).to_be_visible()
    page.locator(".setting").evaluate_all("all => all.forEach((one) => { one.open = true; })")


def broken_settings(page: Page, server: ServerProcess) -> None:
    """Show the banner that says what is wrong with the settings, and mend them for what comes next."""
    file = server.data.parent / "settings.json"
    file.write_text('{\n  "max_history_turns": "ten"\n}')
    page.goto("/settings")
    while not page.locator("#banners .warning").count():  # The server looks at the file every two seconds.
        page.wait_for_timeout(200)
        page.reload()
    file.write_text("{}")


def empty_library(page: Page, server: ServerProcess) -> None:
    """Show the start without a document."""
    while found := server.call("GET", "/api/documents")[1]["documents"]:
        for one in found:
            server.call("DELETE", f"/api/documents/{one['document_id']}")
    page.goto("/")
    expect(page.get_by_role("heading", name="Add your documents")).to_be_visible()


VIEWS: dict[str, View] = {
    "start": opened("/"),
    "temporary": temporary,
    "start about a tag": opened("/?tag=lake", "#scope"),
    "conversation": in_talk(lambda page: expect(page.locator("#turn-8 .sources")).to_be_visible()),
    "older turns": in_talk(lambda page: page.locator("#turn-3").scroll_into_view_if_needed()),
    "unfolded": in_talk(_unfold),
    "waiting": opened(SURE, "form.confirm"),
    "running": opened(WRITING, ".turn.running"),
    "edit": in_talk(_edit),
    "turn menu": in_talk(_turn_menu),
    "row menu": in_talk(_sidebar_menu),
    "options": in_talk(options),
    "window": in_talk(window),
    "gauge": in_talk(_gauge),
    "commands": in_talk(_commands),
    "result": in_talk(_result),
    "shortcuts": in_talk(_shortcuts),
    "search": in_talk(_search),
    "source": in_drawer("#turn-2 .chip"),
    "page picture": in_talk(_page_picture),
    "receipt": in_drawer("#turn-8 .seen"),
    "documents beside": in_drawer('#sidebar a:has-text("Documents")'),
    "settings beside": in_drawer('#sidebar a:has-text("Settings")'),
    "receipt page": opened("/turns/1/receipt"),
    "documents": opened("/documents"),
    "documents sought": opened("/documents?q=zebra"),
    "chosen documents": chosen_documents,
    "document menu": document_menu,
    "uploads": uploads,
    "document": opened("/documents/1"),
    "settings": settings,
    "deleted": opened("/deleted"),
    "ratings": opened("/ratings"),
    "not there": not_there,
    "description of the API": unscripted("/docs"),
    "documentation": unscripted("/help"),
    "a page of the documentation": unscripted("/help/api"),
    "overflow": in_talk(_overflow),
    "broken settings": broken_settings,
    "empty library": empty_library,
}
