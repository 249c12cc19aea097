"""The page of notes, as plain forms."""

from flask import Blueprint, render_template, request

from rag_assistant.records import MAX_INT32, MAX_NOTE_CHARS
from rag_assistant.web.api import notes as api
from rag_assistant.web.forms import as_form, to
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.routing import ASK, READ, services

blueprint = Blueprint("note_pages", __name__)


@blueprint.get("/notes", policy=READ)
def notes() -> str:
    """Show all notes and a form for a new one: with ``turn``, from a turn, or from the ``text`` selected in it."""
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


to_notes = to("note_pages.notes")
blueprint.post("/notes", policy=ASK)(as_form(api.add, to_notes))
blueprint.post("/notes/<int:note_id>", policy=ASK)(as_form(api.change, to_notes))
blueprint.post("/notes/<int:note_id>/delete", policy=ASK)(as_form(api.delete, to_notes))
