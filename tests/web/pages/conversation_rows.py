"""Lists of conversations to test with: filled, and read from a page."""

import re
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert

from rag_assistant.services import Services
from rag_assistant.storage.tables import conversations

ROW = re.compile(r'data-conversation="(\d+)"')
OLDER = re.compile(r'class="older" href="([^"]+)"')


def fill(services: Services, count: int, step: timedelta = timedelta(hours=5), **more: object) -> None:
    """Put empty conversations into the list, the first the latest used."""
    now = datetime.now(UTC)
    rows = [
        {
            "title": f"Conversation {n} about something with a name of usual length",
            "created_at": now - n * step,
            "updated_at": now - n * step,
            "overrides": {},
            "turns": 0,
            "visible_turns": 0,
            "visible_messages": 0,
        }
        | more
        for n in range(1, count + 1)
    ]
    with services.database.write() as connection:
        connection.execute(insert(conversations), rows)


def rows(page: str) -> list[int]:
    """Return the conversations that a page lists."""
    return [int(number) for number in ROW.findall(page)]


def older(page: str) -> str | None:
    """Return where the list goes on."""
    found = OLDER.search(page)
    return found[1].replace("&amp;", "&") if found else None
