"""The page of the notes that are remembered, as plain forms."""

from typing import Any

from flask import Blueprint, Response, render_template, request

from rag_assistant.conversations.commands import MAX_NOTE_CHARS
from rag_assistant.records import MAX_INT32
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.redirects import to_page
from rag_assistant.web.request_bodies import ChangeNoteBody, NewNoteBody
from rag_assistant.web.request_parsing import checked, whole_number
from rag_assistant.web.routing import ASK, READ
from rag_assistant.web.services import services

blueprint = Blueprint("note_pages", __name__)


@blueprint.get("/notes", policy=READ)
def notes() -> str:
    """Show all notes, with a form for another one: with ``turn``, of a turn, or of the ``text`` selected in it."""
    turn_id = whole_number("turn", None, 1, MAX_INT32)
    turn = services().turns.get(turn_id) if turn_id is not None else None
    text = request.args.get("text", "").strip() or (turn.question if turn else "")
    return render_template(
        "notes.html",
        notes=services().notes.all(),
        turn=turn,
        text=text[:MAX_NOTE_CHARS],
        max_note_chars=MAX_NOTE_CHARS,
        **frame(None),
    )


@blueprint.post("/notes", policy=ASK)
def add() -> Response:
    """Make a note."""
    content: dict[str, Any] = {"text": request.form.get("text", ""), "pinned": "pinned" in request.form}
    body = checked(NewNoteBody, content | {"turn_id": _number(request.form.get("turn_id"))})
    services().notes.add(body.text, turn_id=body.turn_id, pinned=body.pinned)
    return to_page("note_pages.notes")


@blueprint.post("/notes/<int:note_id>", policy=ASK)
def change(note_id: int) -> Response:
    """Change a note as the API does; a field that is not there stays."""
    content: dict[str, Any] = {
        name: request.form[name] == "true" for name in ("pinned", "active") if name in request.form
    }
    if "text" in request.form:
        content["text"] = request.form["text"]
    body = checked(ChangeNoteBody, content)
    services().notes.change(note_id, text=body.text, pinned=body.pinned, active=body.active)
    return to_page("note_pages.notes")


@blueprint.post("/notes/<int:note_id>/delete", policy=ASK)
def delete(note_id: int) -> Response:
    """Delete a note."""
    services().notes.delete(note_id)
    return to_page("note_pages.notes")


def _number(digits: str | None) -> Any:
    return int(digits) if digits and digits.isdecimal() and len(digits) < 11 else digits or None
