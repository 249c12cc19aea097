"""The page of the libraries: whose they are and who may use them, as plain forms."""

from flask import Blueprint, Response, render_template, request

from rag_assistant.records.errors import AssistantError
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.identity import note_for_audit
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.redirects import to_page
from rag_assistant.web.request_bodies import ChangeLibraryBody, NewLibraryBody, ShareBody
from rag_assistant.web.request_parsing import checked
from rag_assistant.web.routing import READ_AS_PERSON, SHARING
from rag_assistant.web.services import services

blueprint = Blueprint("library_pages", __name__)


@blueprint.get("/libraries", policy=READ_AS_PERSON)
def libraries(error: AssistantError | None = None) -> str:
    """Show the libraries that may be read, and what others may do with the own ones."""
    return render_template("libraries.html", libraries=services().libraries.all(), error=error, **frame(None))


@blueprint.post("/libraries", policy=SHARING)
def add() -> Response:
    """Make a library."""
    library = services().libraries.add(checked(NewLibraryBody, {"name": request.form.get("name", "")}).name)
    note_for_audit("created a library", library.name)
    return to_page("library_pages.libraries")


@blueprint.post("/libraries/<int:library_id>", policy=SHARING)
def change(library_id: int) -> Response:
    """Rename a library, or say what everyone may do with it."""
    fields = {name: request.form[name] for name in ("name", "everyone") if name in request.form}
    body = checked(ChangeLibraryBody, {name: value or None for name, value in fields.items()})
    library = services().libraries.change(library_id, body.values())
    note_for_audit(f"changed a library ({', '.join(sorted(fields))})", library.name)
    return to_page("library_pages.libraries")


@blueprint.post("/libraries/<int:library_id>/shares", policy=SHARING)
def share(library_id: int) -> Response:
    """Share a library with somebody, or take that back."""
    fields = {"person": request.form.get("person", ""), "access": request.form.get("access") or None}
    body = checked(ShareBody, fields)
    services().libraries.get(library_id)
    try:
        library = services().libraries.share(library_id, body.person, body.access)
    except AssistantError as error:
        return page_with_error(error, libraries(error))
    note_for_audit(f"shared a library with {body.person} ({body.access or 'no more'})", library.name)
    return to_page("library_pages.libraries")


@blueprint.post("/libraries/<int:library_id>/delete", policy=SHARING)
def delete(library_id: int) -> Response:
    """Delete an empty library."""
    name = services().libraries.get(library_id).name
    services().libraries.delete(library_id)
    note_for_audit("deleted a library", name)
    return to_page("library_pages.libraries")
