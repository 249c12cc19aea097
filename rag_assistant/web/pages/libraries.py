"""The page of the libraries and their sharing, as plain forms."""

from flask import Blueprint, render_template

from rag_assistant.records.errors import AssistantError
from rag_assistant.web.api import libraries as api
from rag_assistant.web.forms import as_form, to
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.routing import READ_AS_PERSON, SHARING, services

blueprint = Blueprint("library_pages", __name__)


@blueprint.get("/libraries", policy=READ_AS_PERSON)
def libraries(error: AssistantError | None = None, **_: int) -> str:
    """Show the libraries a person may read, and how their own are shared."""
    return render_template("libraries.html", libraries=services().libraries.all(), error=error, **frame(None))


to_libraries = to("library_pages.libraries")
blueprint.post("/libraries", policy=SHARING)(as_form(api.add, to_libraries))
blueprint.post("/libraries/<int:library_id>", policy=SHARING)(as_form(api.change, to_libraries))
blueprint.post("/libraries/<int:library_id>/shares", policy=SHARING)(as_form(api.share, to_libraries, libraries))
blueprint.post("/libraries/<int:library_id>/delete", policy=SHARING)(as_form(api.delete, to_libraries))
