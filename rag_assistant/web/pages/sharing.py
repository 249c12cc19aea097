"""The pages of what somebody owns and lets others use: libraries, projects, and conversations by link; plain forms."""

from flask import Blueprint, Response, make_response, render_template, request

from rag_assistant.records.errors import AssistantError
from rag_assistant.storage.accounts.libraries import LibraryStore
from rag_assistant.storage.conversations.projects import ProjectStore
from rag_assistant.storage.grids import GridStore
from rag_assistant.web.api import libraries as libraries_api
from rag_assistant.web.api import projects as projects_api
from rag_assistant.web.api.sharing import make_link, read_shared, revoke, share_with
from rag_assistant.web.forms import as_form, errors_on, to
from rag_assistant.web.identity import identity, note_for_audit, signed_in
from rag_assistant.web.markdown.render import render_markdown, too_much_for_page
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.request_bodies import ChangeLibraryBody, ShareBody
from rag_assistant.web.request_parsing import checked, form_fields
from rag_assistant.web.routing import ASK, ASK_AS_PERSON, READ, READ_AS_PERSON, SHARING, services, whole_services

blueprint = Blueprint("sharing_pages", __name__)

CONVERSATIONS_SHOWN = 200
# How many of the newest documents can be chosen on the page.
DOCUMENTS_OFFERED = 200


@blueprint.get("/libraries", policy=READ_AS_PERSON)
def libraries(error: AssistantError | None = None, **_: int) -> str:
    """Show the libraries a person may read, and how their own are shared."""
    return render_template("libraries.html", libraries=services().libraries.all(), error=error, **frame(None))


@blueprint.get("/projects", policy=READ)
def projects() -> str:
    """Show the projects a person may use, and a form for a new one."""
    return render_template("projects.html", all_projects=services().projects.all(), **frame(None))


@blueprint.get("/projects/<int:project_id>", policy=READ)
def project(project_id: int, error: AssistantError | None = None) -> str:
    """Show a project: its conversations, its settings, and who may use it."""
    shown = services().projects.get(project_id)
    documents = services().documents.page(DOCUMENTS_OFFERED, guide=False) if shown.writable else []
    offered = {one.id: one.name for one in documents if one.state != "failed"}
    readable = services().libraries.all() if shown.writable and identity().person else []
    return render_template(
        "project.html",
        project=shown,
        in_it=services().conversations.page(CONVERSATIONS_SHOWN, project_id=project_id),
        document_names=services().documents.names(shown.scope.document_ids) | offered,
        tag_names={name: name for name in services().documents.tags()} if shown.writable else {},
        library_names={one.id: one.name for one in readable},
        added=request.args.getlist("added", type=int),
        error=error,
        **frame(None),
    )


def save_library_access(library_id: int) -> Response:
    """Store who may use a library."""
    return save_access(services().libraries, "library", library_id)


def save_project_access(project_id: int) -> Response:
    """Store who may use a project."""
    return save_access(services().projects, "project", project_id)


def save_access(store: LibraryStore | ProjectStore | GridStore, kind: str, item_id: int) -> Response:
    """Store what the form lets everyone do, and each person: what has changed."""
    current = store.get(item_id)
    allowed = {one.person: one.access for one in current.shares}
    for name, access in zip(request.form.getlist("person"), request.form.getlist("access"), strict=False):
        if name.strip() and (access or None) != allowed.get(name):
            share_with(store, kind, item_id, checked(ShareBody, {"person": name.strip(), "access": access or None}))
    everyone = checked(ChangeLibraryBody, form_fields(ChangeLibraryBody)).values()
    if everyone.get("everyone", current.everyone) != current.everyone:
        store.change(item_id, everyone)
        note_for_audit(f"shared a {kind} with everyone ({everyone['everyone'] or 'no more'})", f"{kind} {item_id}")
    return make_response("")


@blueprint.app_template_global()
def other_accounts() -> list[str]:
    """Return the names of the accounts that something can be shared with."""
    return [
        one.name for one in whole_services().accounts.people.all() if one != identity().person and not one.disabled_at
    ]


@blueprint.get("/conversations/<int:conversation_id>/links", policy=READ_AS_PERSON)
def links(conversation_id: int, new_link: str | None = None, error: AssistantError | None = None) -> str:
    """Show who may read a conversation, by name and by links, with the address of a new link."""
    current, shown = services().links.of(conversation_id), frame(services().conversations.get(conversation_id))
    return render_template("links.html", links=current, new_link=new_link, error=error, **shown)


@blueprint.post("/conversations/<int:conversation_id>/links", policy=ASK_AS_PERSON)
@errors_on(links)
def save_links(conversation_id: int) -> Response:
    """Store who may read a conversation: what has changed. Show the address of a new link, once."""
    allowed = {one.person: one for one in services().links.of(conversation_id) if one.person}
    for link_id in request.form.getlist("revoked", type=int):
        revoke(conversation_id, link_id)
    for name, access in zip(request.form.getlist("person"), request.form.getlist("access"), strict=False):
        current, with_sources = allowed.get(name), access == "sources"
        if current and not access:
            revoke(conversation_id, current.id)
        elif name.strip() and access and not (current and current.with_sources == with_sources):
            make_link(conversation_id, with_sources, name.strip())
    new = request.form.get("new")
    address = make_link(conversation_id, new == "sources")[1] if new else None
    return make_response(links(conversation_id, address))


@blueprint.get("/shared", policy=READ_AS_PERSON)
def shared() -> str:
    """Show a shared conversation, with the sources that its owner shares and the reader may read; or all of them."""
    if "link" not in request.args:
        by_name = whole_services().links.read_by(signed_in().id)
        return render_template("shared_with_me.html", shared=by_name, **frame(None))
    conversation = read_shared(request.args["link"])
    plain = too_much_for_page([turn.answer for turn in conversation.turns])
    drawn = [(turn, render_markdown(turn.answer, plain=nth in plain)) for nth, turn in enumerate(conversation.turns)]
    return render_template(
        "shared.html", title=conversation.title, owner=conversation.owner, shown=drawn, **frame(None)
    )


ONE_LIBRARY, ONE_PROJECT = "/libraries/<int:library_id>", "/projects/<int:project_id>"
to_libraries, to_project = to("sharing_pages.libraries"), to("sharing_pages.project", "project_id")
to_projects = to("sharing_pages.projects")
for rule, policy, name, view in (
    ("/libraries", SHARING, "add_library", as_form(libraries_api.add, to_libraries)),
    (ONE_LIBRARY, SHARING, "change_library", as_form(libraries_api.change, to_libraries)),
    (f"{ONE_LIBRARY}/shares", SHARING, "share_library", as_form(save_library_access, to_libraries, libraries)),
    (f"{ONE_LIBRARY}/delete", SHARING, "delete_library", as_form(libraries_api.delete, to_libraries)),
    ("/projects", ASK, "add_project", as_form(projects_api.add, to_project)),
    (ONE_PROJECT, ASK, "change_project", as_form(projects_api.change, to_project)),
    (f"{ONE_PROJECT}/shares", ASK_AS_PERSON, "share_project", as_form(save_project_access, to_project, project)),
    (f"{ONE_PROJECT}/delete", ASK, "delete_project", as_form(projects_api.delete, to_projects)),
):
    blueprint.post(rule, policy=policy, endpoint=name)(view)
