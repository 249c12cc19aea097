"""The JSON API of notes, which are sent with related questions."""

from flask import Blueprint, Response, jsonify, make_response
from msgspec import field

from rag_assistant.records import Note
from rag_assistant.records.views import answer_data
from rag_assistant.web.request_bodies import ChangeNoteBody, NewNoteBody
from rag_assistant.web.request_parsing import read_body
from rag_assistant.web.routing import ASK, READ, services

blueprint = Blueprint("notes_api", __name__, url_prefix="/api/notes")


class NoteAnswer(Note, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A note, the turn from which it is, and the note that superseded it."""

    id: int = field(name="note_id")


@blueprint.get("", policy=READ, answer={"notes": list[NoteAnswer]})
def notes() -> Response:
    """Return all notes, newest first."""
    return jsonify(notes=[answer_data(NoteAnswer, one) for one in services().notes.all()])


@blueprint.post("", policy=ASK, answer=NoteAnswer, status=201, body=NewNoteBody)
def add() -> Response:
    """Create a note."""
    body = read_body(NewNoteBody)
    note = services().notes.add(body.text, turn_id=body.turn_id, project_id=body.project_id, pinned=body.pinned)
    return make_response(jsonify(answer_data(NoteAnswer, note)), 201)


@blueprint.patch("/<int:note_id>", policy=ASK, answer=NoteAnswer, body=ChangeNoteBody)
def change(note_id: int) -> Response:
    """Pin, accept or switch off a note; with a new text, create and return the note that supersedes it."""
    body = read_body(ChangeNoteBody)
    note = services().notes.change(note_id, text=body.text, pinned=body.pinned, active=body.active)
    return jsonify(answer_data(NoteAnswer, note))


@blueprint.delete("/<int:note_id>", policy=ASK, status=204)
def delete(note_id: int) -> Response:
    """Delete a note."""
    services().notes.delete(note_id)
    return make_response("", 204)
