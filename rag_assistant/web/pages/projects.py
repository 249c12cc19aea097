"""The pages of projects: which there are, and of each its conversations and what holds in them, as plain forms."""

from typing import Any

from flask import Blueprint, Response, render_template, request

from rag_assistant.records.errors import AssistantError
from rag_assistant.web.api.projects import add_project, change_project, delete_project, share_project
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.pages.conversation import limit_from, scope_in_form
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.redirects import to_page
from rag_assistant.web.request_bodies import ChangeProjectBody, NewProjectBody, ShareBody
from rag_assistant.web.request_parsing import checked
from rag_assistant.web.routing import ASK, ASK_AS_PERSON, READ
from rag_assistant.web.services import services

blueprint = Blueprint("project_pages", __name__, url_prefix="/projects")

CONVERSATIONS_SHOWN = 200
# Of so many documents, the newest, some can be chosen on the page.
DOCUMENTS_OFFERED = 200


@blueprint.get("", policy=READ)
def projects() -> str:
    """Show the projects that may be used, and a form for a new one."""
    return render_template("projects.html", all_projects=services().projects.all(), **frame(None))


@blueprint.get("/<int:project_id>", policy=READ)
def project(project_id: int, error: AssistantError | None = None) -> str:
    """Show a project: its conversations, what holds in them, and who may use it."""
    shown = services().projects.get(project_id)
    documents = services().documents.page(DOCUMENTS_OFFERED) if shown.writable else []
    names = {one.id: one.name for one in documents} | services().documents.names(shown.scope.document_ids)
    return render_template(
        "project.html",
        project=shown,
        in_it=services().conversations.page(CONVERSATIONS_SHOWN, project_id=project_id),
        document_names=names,
        tags=services().documents.tags() if shown.writable else {},
        error=error,
        **frame(None),
    )


@blueprint.post("", policy=ASK)
def add() -> Response:
    """Make a project, and show it."""
    new_project = add_project(checked(NewProjectBody, {"name": request.form.get("name", "")}))
    return to_page("project_pages.project", project_id=new_project.id)


@blueprint.post("/<int:project_id>", policy=ASK)
def change(project_id: int) -> Response:
    """Change what a project says, or what everyone may do with it; a field that is not there changes nothing."""
    form = request.form
    content: dict[str, Any] = {name: form[name] for name in ("name", "instructions") if name in form}
    content |= {name: form[name] or "default" for name in ("history_strategy", "on_overflow") if name in form}
    if "max_history_turns" in form:
        content["max_history_turns"] = limit_from(form["max_history_turns"].strip().lower())
    if "everyone" in form:
        content["everyone"] = form["everyone"] or None
    if "scoped" in form:
        content |= {"document_ids": None, "tags": None} | scope_in_form()
    change_project(project_id, checked(ChangeProjectBody, content))
    return to_page("project_pages.project", project_id=project_id)


@blueprint.post("/<int:project_id>/shares", policy=ASK_AS_PERSON)
def share(project_id: int) -> Response:
    """Share a project with somebody, or take that back."""
    fields = {"person": request.form.get("person", ""), "access": request.form.get("access") or None}
    body = checked(ShareBody, fields)
    services().projects.get(project_id)
    try:
        share_project(project_id, body)
    except AssistantError as error:
        return page_with_error(error, project(project_id, error))
    return to_page("project_pages.project", project_id=project_id)


@blueprint.post("/<int:project_id>/delete", policy=ASK)
def delete(project_id: int) -> Response:
    """Delete a project; the conversations in it stay."""
    delete_project(project_id)
    return to_page("project_pages.projects")
