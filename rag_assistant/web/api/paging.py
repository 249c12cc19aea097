"""Paging of lists: ``cursor``, opaque to clients, is where a page begins, ``next_cursor`` where the next one does."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, jsonify, request

from rag_assistant.records import MAX_INT32
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.records.validation import spells_number
from rag_assistant.storage.conversations.conversations import Cursor

# The parameters of a list, and what its response has besides the items.
PAGE_PARAMS = ("limit", "cursor")
PAGE: dict[str, Any] = {"next_cursor": str | None}
CURSOR = re.compile(r"(\d{1,17})-(\d{1,10})", re.ASCII)
BEGINNING_OF_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def number_before() -> int | None:
    """Return the cursor of a list sorted by number. Raises InvalidRequest."""
    cursor = request.args.get("cursor")
    if cursor is None:
        return None
    if not (spells_number(cursor) and 1 <= int(cursor) <= MAX_INT32):
        raise unknown_cursor("cursor", cursor)
    return int(cursor)


def cursor_of(moment: datetime, conversation_id: int) -> str:
    """Return the cursor of a list sorted by time: microseconds since 1970, then the id."""
    microseconds = (moment - BEGINNING_OF_TIME) // timedelta(microseconds=1)
    return f"{microseconds}-{conversation_id}"


def parse_cursor(name: str, text: str | None) -> Cursor | None:
    """Parse a cursor made by ``cursor_of``; None for None. Raises InvalidRequest."""
    if text is None:
        return None
    spelled = CURSOR.fullmatch(text)
    if spelled is None or int(spelled[2]) > MAX_INT32:
        raise unknown_cursor(name, text)
    return BEGINNING_OF_TIME + timedelta(microseconds=int(spelled[1])), int(spelled[2])


def unknown_cursor(name: str, text: str) -> InvalidRequest:
    """Return the error for an invalid cursor."""
    return InvalidRequest(f'{name} is "{text[:50]}"; it must be the next_cursor of the previous page.')


def page_response(name: str, items: list[dict[str, Any]], following: str | int | None, **more: Any) -> Response:
    """Return a page of a list; ``following`` is the next one's cursor, ``None`` after the last."""
    return jsonify({name: items, "next_cursor": None if following is None else str(following)} | more)
