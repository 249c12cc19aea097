"""The page of the settings: what holds, where it comes from, and how it is changed. It changes no file."""

from __future__ import annotations

import json

from flask import Blueprint, render_template, request

from rag_assistant import __version__
from rag_assistant.llm.connection_check import ConnectionCheck, check_connection
from rag_assistant.llm.local_servers import find_local_servers
from rag_assistant.presenters.settings import ADVANCED, settings_view
from rag_assistant.records import MAX_INT32
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.services import services

blueprint = Blueprint("settings_pages", __name__)

# What connects a model, ready to be pasted into settings.json.
CONNECTIONS = {
    "A local server, such as Ollama": {"openai_base_url": "http://localhost:11434/v1"},
    "A provider with a key, such as OpenAI": {
        "openai_base_url": "https://api.openai.com/v1",
        "openai_api_key": "your key",
        "openai_model": "gpt-4o-mini",
    },
}


@blueprint.get("/settings")
def settings() -> str:
    """Show every setting, or those that hold the words of ``filter``; with what one conversation has of its own."""
    return _settings_page(None)


@blueprint.post("/settings/test")
def test_connection() -> str:
    """Ask the endpoint of the settings for a word, and show what came of it."""
    return _settings_page(check_connection(services().models))


def _settings_page(check: ConnectionCheck | None) -> str:
    number = whole_number("conversation", None, 1, MAX_INT32)
    shown = services().conversations.get(number) if number is not None else None
    in_force = services().settings
    sought = request.args.get("filter", "").strip()
    file_is_there = in_force.path.exists()
    return render_template(
        drawer("settings.html"),
        filter=sought,
        topics=settings_view(in_force.current, in_force.origins, sought),
        advanced=ADVANCED,
        version=__version__,
        file_is_there=file_is_there,
        connections={name: _block(values, file_is_there) for name, values in _connections().items()},
        check=check,
        has_endpoint=services().models.has_endpoint,
        **frame(shown),
    )


def _connections() -> dict[str, dict[str, str]]:
    """Return what can be pasted to connect a model: that of servers that run on this machine first."""
    if services().models.connected:
        return CONNECTIONS
    noticed = {
        f"{server.name} is running on this machine": {"openai_base_url": server.base_url, "openai_model": server.model}
        for server in find_local_servers()
    }
    return noticed | CONNECTIONS


def _block(values: dict[str, str], into_a_file: bool) -> str:
    """Return settings as JSON: lines to stand in front of those of a file, or a file of their own."""
    whole = json.dumps(values, indent=2)
    return whole.removeprefix("{\n").removesuffix("\n}") + "," if into_a_file else whole
