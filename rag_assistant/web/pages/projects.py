"""The pages of projects: a list, and for each its conversations and settings, as plain forms."""

from flask import Blueprint, render_template

from rag_assistant.records.errors import AssistantError
from rag_assistant.web.api import projects as api
from rag_assistant.web.forms import as_form, to
from rag_assistant.web.identity import identity
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.routing import ASK, ASK_AS_PERSON, READ, services

blueprint = Blueprint("project_pages", __name__, url_prefix="/projects")

CONVERSATIONS_SHOWN = 200
# How many of the newest documents can be chosen on the page.
DOCUMENTS_OFFERED = 200


@blueprint.get("", policy=READ)
def projects() -> str:
    """Show the projects a person may use, and a form for a new one."""
    return render_template("projects.html", all_projects=services().projects.all(), **frame(None))


@blueprint.get("/<int:project_id>", policy=READ)
def project(project_id: int, error: AssistantError | None = None) -> str:
    """Show a project: its conversations, its settings, and who may use it."""
    shown = services().projects.get(project_id)
    documents = services().documents.page(DOCUMENTS_OFFERED, guide=False) if shown.writable else []
    offered = {one.id: one.name for one in documents if one.state != "failed"}
    libraries = services().libraries.all() if shown.writable and identity().person else []
    return render_template(
        "project.html",
        project=shown,
        in_it=services().conversations.page(CONVERSATIONS_SHOWN, project_id=project_id),
        document_names=services().documents.names(shown.scope.document_ids) | offered,
        tag_names={name: name for name in services().documents.tags()} if shown.writable else {},
        library_names={one.id: one.name for one in libraries},
        error=error,
        **frame(None),
    )


to_project = to("project_pages.project", "project_id")
blueprint.post("", policy=ASK)(as_form(api.add, to_project))
blueprint.post("/<int:project_id>", policy=ASK)(as_form(api.change, to_project))
blueprint.post("/<int:project_id>/shares", policy=ASK_AS_PERSON)(as_form(api.share, to_project, project))
blueprint.post("/<int:project_id>/delete", policy=ASK)(as_form(api.delete, to("project_pages.projects")))
