"""What every page shows around its content, and whether it comes as a page of its own or into the drawer."""

from __future__ import annotations

from typing import Any

from flask import request

from rag_assistant.records import Conversation
from rag_assistant.retrieval.words import query_words
from rag_assistant.web.services import services
from rag_assistant.web.system import readiness

CONVERSATIONS_SHOWN = 100
CONVERSATIONS_FOUND = 50


def frame(shown: Conversation | None) -> dict[str, Any]:
    """Return what every page shows around its content; ``shown`` is the conversation that it is about."""
    parts = readiness(services())
    sought = request.args.get("q", "").strip()
    manager = services().conversations
    return {
        "conversation": shown,
        "sought": sought,
        "conversations": manager.find(query_words(sought), CONVERSATIONS_FOUND)
        if sought
        else manager.page(CONVERSATIONS_SHOWN),
        "built_in": services().models.uses_built_in(),
        "starting": [part for part, state in parts.items() if state == "starting"],
        "settings_problem": services().settings.problem,
        "settings": services().settings.current,
    }


def drawer(template: str) -> str:
    """Return the template for the drawer if a script asks for it, else for a page of its own."""
    return f"_{template}" if request.args.get("drawer") == "1" else template
