"""The JSON API of libraries and their sharing."""

from flask import Blueprint, Response, jsonify, make_response
from msgspec import field

from rag_assistant.records.views import SharedAnswer, answer_data
from rag_assistant.web.api.sharing import share_with
from rag_assistant.web.identity import note_for_audit
from rag_assistant.web.request_bodies import ChangeLibraryBody, NewLibraryBody, ShareBody
from rag_assistant.web.request_parsing import read_body
from rag_assistant.web.routing import READ, SHARING, services

blueprint = Blueprint("libraries_api", __name__, url_prefix="/api/libraries")


class LibraryAnswer(SharedAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set of documents, whose it is, and with whom it is shared."""

    id: int = field(name="library_id")
    documents: int


@blueprint.get("", policy=READ, answer={"libraries": list[LibraryAnswer]})
def libraries() -> Response:
    """Return the libraries you can read, your own first."""
    return jsonify(libraries=[answer_data(LibraryAnswer, one) for one in services().libraries.all()])


@blueprint.post("", policy=SHARING, answer=LibraryAnswer, status=201, body=NewLibraryBody)
def add() -> Response:
    """Create a library."""
    library = services().libraries.add(read_body(NewLibraryBody).name)
    note_for_audit("created a library", f"library {library.id}")
    return make_response(jsonify(answer_data(LibraryAnswer, library)), 201)


@blueprint.patch("/<int:library_id>", policy=SHARING, answer=LibraryAnswer, body=ChangeLibraryBody)
def change(library_id: int) -> Response:
    """Rename a library, or set what everyone may do with it."""
    body = read_body(ChangeLibraryBody)
    library = services().libraries.change(library_id, body.values())
    note_for_audit(f"changed a library ({', '.join(sorted(body.model_fields_set))})", f"library {library.id}")
    return jsonify(answer_data(LibraryAnswer, library))


@blueprint.put("/<int:library_id>/shares", policy=SHARING, answer=LibraryAnswer, body=ShareBody)
def share(library_id: int) -> Response:
    """Share a library with somebody, or stop sharing it."""
    library = share_with(services().libraries, "library", library_id, read_body(ShareBody))
    return jsonify(answer_data(LibraryAnswer, library))


@blueprint.delete("/<int:library_id>", policy=SHARING, status=204)
def delete(library_id: int) -> Response:
    """Delete an empty library."""
    services().libraries.delete(library_id)
    note_for_audit("deleted a library", f"library {library_id}")
    return make_response("", 204)
