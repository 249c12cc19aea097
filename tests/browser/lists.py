"""Fill the list of conversations, or one of them, of a running server; find the parts of the list on the page."""

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import Locator, Page
from sqlalchemy import insert

from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.tables import conversations
from tests.testkit.server_process import ServerProcess


def fill(server: ServerProcess, count: int, **more: Any) -> None:
    """Put empty conversations into the list: 1 was used three hours ago, each further one three hours before."""
    now = datetime.now(UTC)
    empty = {"overrides": {}, "turns": 0, "visible_turns": 0, "visible_messages": 0} | more
    used = [now - timedelta(hours=3 * n) for n in range(1, count + 1)]
    rows = [
        {"title": f"Talk {n}", "created_at": moment, "updated_at": moment} | empty for n, moment in enumerate(used, 1)
    ]
    database = Database(sqlite_url(server.data))
    with database.write() as connection:
        connection.execute(insert(conversations), rows)
    database.close()


def row(page: Page, title: str) -> Locator:
    """Return the row of the conversation with this title."""
    return page.locator("#conversations .conversation").filter(has=page.get_by_text(title, exact=True))


def choose(page: Page, title: str, action: str) -> None:
    """Open the menu of a row and choose from it."""
    row(page, title).hover()
    page.get_by_role("button", name=f"Actions for {title}", exact=True).click()
    page.get_by_role("menuitem", name=action, exact=True).click()


def lengthen(server: ServerProcess, count: int) -> None:
    """Make a conversation of ``count`` turns by copying its first one in the database of a server that rests meanwhile.

    The turns differ in their numbers and questions: "Question 7".
    """
    server.call("POST", "/api/query", {"question": "Question 1"})
    server.kill()
    path = server.data / "assistant.db"
    with sqlite3.connect(path) as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(turns)") if row[1] not in ("id", "number")]
        listed = ", ".join(names)
        for number in range(2, count + 1):
            made = database.execute(
                f"INSERT INTO turns (number, {listed}) SELECT ?, {listed} FROM turns WHERE id = 1", (number,)
            ).lastrowid
            database.execute(
                "INSERT INTO messages (turn_id, position, role, content, extra) SELECT ?, position, role, "
                "replace(content, 'Question 1', 'Question ' || ?), extra FROM messages WHERE turn_id = 1",
                (made, number),
            )
        database.execute(
            "UPDATE conversations SET turns = ?, visible_turns = ?, visible_messages = ?", (count, count, 2 * count)
        )
    database.close()
    server.start("/readyz")
