"""The receipt of an answer as a page, and as a command that sends its request again."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, make_response, render_template, url_for

from rag_assistant.llm.client import OPENAI_BASE_URL
from rag_assistant.records import Turn
from rag_assistant.records.errors import ReceiptNotFound
from rag_assistant.web.languages import gettext
from rag_assistant.web.pages.conversation import TURNS_SHOWN
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.pages.receipt_parts import as_curl, parts_of
from rag_assistant.web.routing import READ
from rag_assistant.web.services import services

blueprint = Blueprint("receipt_pages", __name__)


@blueprint.get("/turns/<int:turn_id>/receipt", policy=READ)
def receipt(turn_id: int) -> str:
    """Show what the model saw for a turn, part by part, and what was left out."""
    turn = services().turns.get(turn_id)
    body = services().turns.receipt(turn_id)
    return render_template(
        drawer("receipt.html"),
        turn=turn,
        receipt=body,
        heading=gettext("Passages used") if body and body.get("quotes") else gettext("What the model saw"),
        parts=parts_of(turn, body) if body else [],
        place_of_turn=lambda number: _place_of(turn, number),
        back=_place_of(turn, turn.number),
        **frame(None),
    )


@blueprint.get("/turns/<int:turn_id>/receipt.sh", policy=READ)
def curl(turn_id: int) -> Response:
    """Return the last request of a turn as a shell command."""
    services().turns.get(turn_id)
    body: dict[str, Any] | None = services().turns.receipt(turn_id)
    if body is None or "request" not in body:
        raise ReceiptNotFound(turn_id)
    response = make_response(as_curl(body["request"], services().settings.current.openai_base_url or OPENAI_BASE_URL))
    response.mimetype = "text/plain"
    return response


def _place_of(turn: Turn, number: int) -> str:
    """Return the address at which a turn of the same conversation is shown."""
    newest = services().conversations.get(turn.conversation_id).turns
    before = number + 1 if number <= newest - TURNS_SHOWN else None
    return url_for("pages.conversation", conversation_id=turn.conversation_id, before=before, _anchor=f"turn-{number}")
