"""Every route of the application, with an address for given ids and a body."""

import io
import re
import time
from collections.abc import Sequence
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

MODEL = "rag-assistant"
CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Why?"}]}
# Public routes.
STATIC = ("static", "versioned_static")
# Destructive routes come last, so that everything before finds its data.
ENDINGS = (
    "notes_api.delete", "history_pages.delete_note",
    "history_pages.erase", "projects_api.delete", "sharing_pages.delete_project", "sharing_api.revoke",
    "api.erase_turn", "openai.delete_response", "grid_pages.delete", "grids_api.delete", "grid_pages.restore",
    "grids_api.restore", "grids_api.erase", "grid_pages.erase",
    "document_pages.delete_document", "documents_api.delete",
    "pages.delete_conversation", "pages.restore_conversation", "conversations_api.delete_conversation",
    "conversations_api.restore_conversation", "pages.purge_conversation", "sidebar.erase",
    "conversations_api.purge_conversation",
)  # fmt: skip

# Bodies that get a route as far as looking up what it names.
JSON_BODIES: dict[str, dict[str, Any]] = {
    "conversations_api.change_conversation": {"title": "Seized"},
    "conversations_api.edit_summary": {"text": "Seized."},
    "conversations_api.command": {"command": "/history"},
    "api.change_turn": {"pinned": True},
    "api.rate": {"rating": "down"},
    "documents_api.change": {"name": "seized.txt"},
    "documents_api.add_web_page": {"url": "http://127.0.0.1/"},
    "grids_api.add": {"name": "Seized", "columns": [{"question": "Why?"}]},
    "grids_api.change": {"name": "Seized"},
    "grids_api.share": {"person": "Cat", "access": "write"},
    "libraries_api.add": {"name": "Seized"},
    "libraries_api.change": {"everyone": "write"},
    "libraries_api.share": {"person": "Cat", "access": "write"},
    "notes_api.add": {"text": "Seized."},
    "notes_api.change": {"pinned": True},
    "projects_api.add": {"name": "Seized"},
    "projects_api.change": {"instructions": "Seized."},
    "projects_api.share": {"person": "Cat", "access": "write"},
    "sharing_api.make": {"with_sources": True},
    "api.query": {"question": "Why?"},
    "api.query_stream": {"question": "Why?"},
    "openai.chat_completions": CHAT,
    "openai.embeddings": {"model": "rag-assistant-embeddings", "input": ["Why?"]},
    "openai.create_response": {"model": MODEL, "input": "Why?"},
    "mcp.mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "openai.compact": {"model": MODEL, "input": CHAT["messages"]},
}
FORMS: dict[str, dict[str, Any]] = {
    "pages.ask": {"question": "Why?"},
    "pages.rename": {"title": "Seized"},
    "pages.choices": {"on_overflow": "trim"},
    "pages.choose_version": {"version": "1"},
    "history_pages.edit_summary": {"text": "Seized."},
    "history_pages.mark": {"pinned": "true"},
    "history_pages.add_note": {"text": "Seized."},
    "history_pages.change_note": {"pinned": "true"},
    "history_pages.rate": {"rating": "down"},
    "document_pages.change": {"name": "seized.txt", "tags": "seized"},
    "document_pages.act_on_selected": {"do": "ask"},
    "grid_pages.add": {
        "name": "Seized",
        "column_id": "",
        "column_name": "",
        "column_question": "Why?",
        "column_type": "text",
    },
    "grid_pages.change": {"name": "Seized"},
    "grid_pages.share": {"person": "Cat", "access": "write"},
    "sharing_pages.add_library": {"name": "Seized"},
    "sharing_pages.change_library": {"everyone": "write"},
    "sharing_pages.share_library": {"person": "Cat", "access": "write"},
    "sharing_pages.add_project": {"name": "Seized"},
    "sharing_pages.change_project": {"instructions": "Seized."},
    "sharing_pages.share_project": {"person": "Cat", "access": "write"},
    "sidebar.act_on_selected": {"do": "delete"},
    "sidebar.pin": {"pinned": "true"},
    "sidebar.choose_theme": {"theme": "dark"},
}
QUERIES = {
    "api.search": "?q=why",
    "api.erase_turn": "?permanently=1",
}


def routes(app: Flask) -> list[tuple[str, str, str]]:
    """Return endpoint, method and rule of every route, destructive ones last."""
    found = [
        (rule.endpoint, method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
        if rule.endpoint not in STATIC
    ]
    rank = {name: place for place, name in enumerate(ENDINGS, 2)}
    return sorted(found, key=lambda route: (rank.get(route[0], route[1] != "GET"), route[2]))


def path_of(rule: str, ids: dict[str, int], trash: bool = False) -> str:
    """Return an address of a rule; an unknown placeholder is an error."""
    known = {"version": 1, "n": 1, "number": 1, "name": MODEL, "response_id": f"resp_{ids['turn_id']}"} | ids
    if trash:
        known["conversation_id"] = known["deleted"]
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(known[found[1]]), rule)


def some_of(choices: Sequence[Any], number: int, every: bool) -> Sequence[Any]:
    """Return the choices for a route: one of them in turn, or all."""
    return choices if every else [choices[number % len(choices)]]


def send(client: FlaskClient, endpoint: str, method: str, path: str) -> TestResponse:
    """Send a route a valid body, and return the whole response."""
    more: dict[str, Any] = {}
    if endpoint in JSON_BODIES and method != "GET":
        more["json"] = JSON_BODIES[endpoint]
    elif endpoint in FORMS and method != "GET":
        more["data"] = FORMS[endpoint]
    elif endpoint in ("documents_api.add", "document_pages.add_documents"):
        more["data"] = {"file": (io.BytesIO(b"Geese."), f"note {time.monotonic_ns()}.txt")}
    response = client.open(path + QUERIES.get(endpoint, ""), method=method, buffered=True, **more)
    assert response.status_code != 500, (method, path)
    return response
