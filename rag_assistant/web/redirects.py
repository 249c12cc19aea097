"""Redirects after a form, with status 303, so that a reload sends nothing again."""

from typing import Any, cast

from flask import Response, redirect, url_for

from rag_assistant.records import Turn


def to_address(address: str) -> Response:
    return cast(Response, redirect(address, 303))


def to_page(endpoint: str, **arguments: Any) -> Response:
    """Redirect to a page."""
    return to_address(url_for(endpoint, **arguments))


def to_conversation(conversation_id: int, **arguments: Any) -> Response:
    return to_page("pages.conversation", conversation_id=conversation_id, **arguments)


def to_turn(turn: Turn, **arguments: Any) -> Response:
    """Redirect to a turn in its conversation."""
    return to_conversation(turn.conversation_id, _anchor=f"turn-{turn.number}", **arguments)
