"""The JSON API of projects and their sharing."""

from flask import Blueprint, Response, jsonify, make_response

from rag_assistant.records import EVERYTHING
from rag_assistant.records.views import ProjectAnswer, project_data
from rag_assistant.web.api.sharing import share_with
from rag_assistant.web.identity import note_for_audit
from rag_assistant.web.request_bodies import ChangeProjectBody, NewProjectBody, ShareBody
from rag_assistant.web.request_parsing import read_body
from rag_assistant.web.routing import ASK, ASK_AS_PERSON, READ, services

blueprint = Blueprint("projects_api", __name__, url_prefix="/api/projects")


@blueprint.get("", policy=READ, answer={"projects": list[ProjectAnswer]})
def projects() -> Response:
    """Return the projects you can use, your own first."""
    return jsonify(projects=[project_data(one) for one in services().projects.all()])


@blueprint.post("", policy=ASK, answer=ProjectAnswer, status=201, body=NewProjectBody)
def add() -> Response:
    """Create a project."""
    body = read_body(NewProjectBody)
    scope = body.scope() or EVERYTHING
    services().documents.check_scope(scope)
    new_project = services().projects.add(body.name, body.instructions, scope, body.own())
    return make_response(jsonify(project_data(new_project)), 201)


@blueprint.get("/<int:project_id>", policy=READ, answer=ProjectAnswer)
def project(project_id: int) -> Response:
    """Return a project."""
    return jsonify(project_data(services().projects.get(project_id)))


@blueprint.patch("/<int:project_id>", policy=ASK, answer=ProjectAnswer, body=ChangeProjectBody)
def change(project_id: int) -> Response:
    """Change a project, or set what everyone may do with it."""
    before, body = services().projects.get(project_id), read_body(ChangeProjectBody)
    scope, values = body.scope(before.scope), body.values()
    # Whoever else changes it may not see everything its owner chose.
    if scope is not None and scope != before.scope:
        services().documents.check_scope(scope)
    changed = services().projects.change(project_id, values, scope=scope, own=body.own())
    if "everyone" in values:
        note_for_audit(f"shared a project with everyone ({values['everyone'] or 'no more'})", f"project {changed.id}")
    note_for_audit(f"changed a project ({', '.join(sorted(body.model_fields_set))})", f"project {changed.id}")
    return jsonify(project_data(changed))


@blueprint.put("/<int:project_id>/shares", policy=ASK_AS_PERSON, answer=ProjectAnswer, body=ShareBody)
def share(project_id: int) -> Response:
    """Share a project with somebody, or stop sharing it."""
    return jsonify(project_data(share_with(services().projects, "project", project_id, read_body(ShareBody))))


@blueprint.delete("/<int:project_id>", policy=ASK, status=204)
def delete(project_id: int) -> Response:
    """Delete a project; its conversations stay."""
    services().projects.delete(project_id)
    note_for_audit("deleted a project", f"project {project_id}")
    return make_response("", 204)
