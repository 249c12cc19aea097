"""The page of the settings: what holds, where it comes from, and how it is changed. It changes no file."""

from __future__ import annotations

from flask import Blueprint, render_template, request

from rag_assistant.records import LARGEST_NUMBER
from rag_assistant.settings_view import settings_view
from rag_assistant.web.bodies import whole_number
from rag_assistant.web.frame import drawer, frame
from rag_assistant.web.services import services

blueprint = Blueprint("settings_pages", __name__)


@blueprint.get("/settings")
def settings() -> str:
    """Show every setting, or those that hold the words of ``filter``; with what one conversation has of its own."""
    number = whole_number("conversation", None, 1, LARGEST_NUMBER)
    shown = services().conversations.get(number) if number is not None else None
    in_force = services().settings
    sought = request.args.get("filter", "").strip()
    return render_template(
        drawer("settings.html"),
        filter=sought,
        topics=settings_view(in_force.current, in_force.origins, sought),
        file_is_there=in_force.path.exists(),
        **frame(shown),
    )
