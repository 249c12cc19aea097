"""The library pages: its documents, their text, and what can be done with them, as plain forms."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flask import Blueprint, Response, make_response, render_template, request, url_for
from msgspec.json import encode
from msgspec.structs import replace

from rag_assistant.documents.embedding import unfamiliar_documents
from rag_assistant.documents.page_images import DRAWN
from rag_assistant.documents.uploads import MAX_NAME_CHARS, MAX_TAG_CHARS, clean_name
from rag_assistant.extraction.formats.kinds import is_archive
from rag_assistant.records import DOCUMENT_SORTS, MAX_INT32, Document, DocumentSort
from rag_assistant.records.errors import BodyTooLarge, InvalidRequest, UnsupportedDocument
from rag_assistant.settings.package_files import command_for_extra
from rag_assistant.web.api import documents as api
from rag_assistant.web.api.documents import uploaded_files
from rag_assistant.web.forms import as_form, to_page
from rag_assistant.web.identity import identity
from rag_assistant.web.languages import language
from rag_assistant.web.markdown.passage import shown_text, with_edges
from rag_assistant.web.markdown.render import render_document
from rag_assistant.web.pages import document_status
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.request_bodies import MAX_DOCUMENT_IDS, MAX_TAGS, ChangeDocumentBody
from rag_assistant.web.request_parsing import checked, flag_asked, ids_of, one_of, read_body, text_asked, whole_number
from rag_assistant.web.routing import DOCUMENTS, READ, services

blueprint = Blueprint("document_pages", __name__)

DOCUMENTS_SHOWN = 50
DEFAULT_SORT: DocumentSort = "-added"
# Messages for invalid fields.
HINTS: dict[str | None, str] = {
    "name": f"Use a name of 1 to {MAX_NAME_CHARS} characters, without slashes.",
    "tags": f"Use up to {MAX_TAGS} tags, each of 1 to {MAX_TAG_CHARS} characters, separated by commas.",
    "date": "Write the date as 2024-05-31, 2024-05 or 2024.",
}
# Per form: all of them are on disk at once, each up to the size limit.
MAX_FILES = 20

# The name of a refused file, and why.
Refused = tuple[str, str]


@blueprint.get("/documents", policy=READ)
def documents() -> Response:
    """Show the library in an order (``sort``), page by page; with ``tag``, ``q`` or ``state``, a part of it.

    An open page polls: while nothing is new, nothing is rendered.
    """
    library = _library()
    response = make_response("" if library["etag"] in request.if_none_match else _drawn(library))
    response.set_etag(library["etag"])
    response.make_conditional(request)
    return response


@blueprint.get("/documents/report", policy=READ)
def library_report() -> str:
    """Show what could be wrong with the library and the answers that rest on it, and what to do about it."""
    report = services().reports.report(counts_others=identity().may_manage)
    return render_template("report.html", report=report, deleted=_deleted(), **frame(None))


@blueprint.post("/documents", policy=DOCUMENTS)
def add_documents() -> Response:
    """Add the files of the form; refused ones are named."""
    files, fields = uploaded_files(MAX_FILES)
    if fields.replaces and len(files) > 1:
        raise InvalidRequest(f"There are {len(files)} files; a newer version must be a single file.")
    refused: list[Refused] = []
    sent = len(files)
    for file, name in files:
        try:
            if is_archive(name) and not fields.replaces:
                given = fields.model_dump(include={"tags", "library_id"})
                added, not_added = services().library.accept_archive(file, name, **given)
                refused += not_added
                sent += len(added) + len(not_added) - 1
            else:
                services().library.accept(file, name, **fields.model_dump())
        except (UnsupportedDocument, BodyTooLarge, InvalidRequest) as error:
            if len(files) == 1:
                raise
            refused.append((clean_name(name), str(error)))
    if refused:
        return make_response(_drawn(_library(), refused, sent), 422)
    return to_page("document_pages.documents")


@blueprint.post("/projects/<int:project_id>/files", policy=DOCUMENTS)
def add_to_project(project_id: int) -> Response:
    """Add the files of the form to the documents that a project asks."""
    scope = services().projects.change(project_id, {}).scope  # Who may not is refused before a file is stored.
    files, fields = uploaded_files(MAX_FILES)
    own, added = {**fields.model_dump(), "tags": [*fields.tags, *scope.tags]}, []
    for file, name in files:
        document, _ = services().library.accept(file, name, **own)
        if scope.document_ids or scope.library_ids:
            scope = replace(scope, document_ids=tuple(dict.fromkeys([*scope.document_ids, document.id])))
            services().projects.change(project_id, {}, scope=scope)
        else:
            added.append(document.id)
    return to_page("sharing_pages.project", project_id=project_id, added=added)


for rule, action in (
    ("web-page", api.add_web_page),
    ("<int:document_id>/fetch", api.fetch_again),
    ("<int:document_id>/cancel", api.cancel),
    ("<int:document_id>/retry", api.retry),
):
    blueprint.post(f"/documents/{rule}", policy=DOCUMENTS)(as_form(action, lambda _: _to_library()))


@blueprint.post("/documents/<int:document_id>/change", policy=DOCUMENTS)
def change(document_id: int) -> Response:
    """Rename a document, or change its tags or its date; an empty field removes all, or a corrected date."""
    with _hints():
        api.change(document_id)
    return _to_library()


@blueprint.post("/documents/<int:document_id>/delete", policy=DOCUMENTS)
def delete_document(document_id: int) -> Response:
    """Move a document to the trash, and offer to restore it."""
    services().library.trash(document_id)
    return _to_library(deleted=document_id)


@blueprint.post("/documents/restore", policy=DOCUMENTS)
def restore_documents() -> Response:
    """Restore documents from the trash."""
    for document_id in ids_of("document_ids", request.form.getlist("document_ids")):
        services().documents.restore(document_id)
    return _to_library()


@blueprint.post("/documents/guide", policy=DOCUMENTS)
def switch_guide() -> Response:
    """Delete the guide, or add it again."""
    if pages := services().documents.guide():
        for one in pages:
            services().library.remove(one)
    else:
        services().add_guide()
    return _to_library()


@blueprint.post("/deleted/documents/<int:document_id>/erase", policy=DOCUMENTS)
def erase_document(document_id: int) -> Response:
    """Delete a document in the trash permanently."""
    services().library.remove(document_id, in_trash=True)
    return to_page("sidebar.deleted", erased=1)


@blueprint.post("/documents/selected", policy=DOCUMENTS)
def act_on_selected() -> Response:
    """Ask about the selected documents, make a table of them, delete them, or add tags."""
    selected = ids_of("document_ids", request.form.getlist("document_ids"))
    what = one_of("do", request.form.get("do", ""), ("ask", "grid", "delete", "tag"))
    if not 1 <= len(selected) <= MAX_DOCUMENT_IDS:
        raise InvalidRequest(f"{len(selected)} documents are selected; select 1 to {MAX_DOCUMENT_IDS}.")
    if what == "grid":
        return to_page("grid_pages.grids", documents=selected, _anchor="grid-name")
    if what == "ask":
        askable = [one for one in selected if document_status.is_askable(services().documents.get(one))]
        if not askable:
            raise InvalidRequest("None of the selected documents can be searched.")
        return to_page("pages.start", documents=askable)
    if what == "delete":
        for document_id in services().documents.names(selected):
            services().library.trash(document_id)
        return _to_library(deleted=selected)
    with _hints():
        added = read_body(ChangeDocumentBody).tags or []
        for document_id in selected:
            current = services().documents.get(document_id).tags
            both = checked(ChangeDocumentBody, {"tags": list(dict.fromkeys([*current, *added]))}).tags
            services().documents.change(document_id, tags=both)
    return _to_library()


@blueprint.get("/documents/<int:document_id>", policy=READ)
def document(document_id: int) -> str:
    """Show a document with the passage from ``start`` to ``end`` marked; of a large one, what is around it.

    ``at`` is where to read on in a large one, ``page`` the page whose image is shown, with ``whole`` all of it.
    """
    start = whole_number("start", 0, 0, MAX_INT32) or 0
    end = whole_number("end", start, 0, MAX_INT32) or 0
    return document_page(services().documents.get(document_id), start, end)


def document_page(document: Document, start: int, end: int, **more: Any) -> str:
    """Render the page of a document with a passage marked, and other details."""
    at = whole_number("at", None, 0, MAX_INT32)
    text = services().documents.text(document.id)
    shown = shown_text(text, start, end, at)
    page = whole_number("page", shown.page or 1, 1, MAX_INT32) or 1
    return render_template(
        drawer("document.html"),
        document=document,
        shown=shown,
        drawn=render_document(with_edges(shown.before, shown.passage, shown.after)) if text.markdown else None,
        start=start,
        end=end,
        holds_passage=(shown.page or 0) <= page <= (shown.last_page or 0),
        whole=flag_asked("whole") is True,
        page=min(page, document.pages or 1) if document.media_type in DRAWN and document.pages else None,
        here=lambda **changes: url_for(str(request.endpoint), **_arguments() | changes),
        section=services().chunks.section_at(document.id, start) if end > start else None,
        older_names=services().documents.names([document.replaces] if document.replaces else []),
        **more,
        **frame(None),
    )


@contextmanager
def _hints() -> Iterator[None]:
    """Say of an invalid name or tag what the form takes."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(HINTS.get(error.param, str(error))) from error


def _arguments() -> dict[str, Any]:
    """Return the parameters of this page's address, without the one for the drawer."""
    fields = {name: value for name, value in request.args.items() if name in ("start", "end", "at", "page", "whole")}
    return fields | (request.view_args or {})


def _library() -> dict[str, Any]:
    tag, sought = request.args.get("tag") or None, text_asked("q")
    if tag:  # As it is stored, or refused.
        tag = (checked(ChangeDocumentBody, {"tags": [tag]}).tags or [tag])[0]
    sort = one_of("sort", request.args.get("sort", DEFAULT_SORT), DOCUMENT_SORTS)
    state = one_of("state", request.args.get("state", ""), document_status.STATE_FILTERS)
    totals = services().documents.totals(tag, sought)
    counts = {
        name: sum(totals[one][0] for one in states if one in totals)
        for name, states in document_status.STATE_FILTERS.items()
    }
    count, size = counts[state], sum(totals[one][1] for one in document_status.STATE_FILTERS[state] if one in totals)
    pages = max(1, -(-count // DOCUMENTS_SHOWN))
    page = min(whole_number("page", 1, 1, MAX_INT32) or 1, pages)
    offset, states = (page - 1) * DOCUMENTS_SHOWN, document_status.STATE_FILTERS[state]
    shown = services().documents.page(
        DOCUMENTS_SHOWN, sort=sort, offset=offset, tag=tag, sought=sought, states=states, guide=False
    )
    library = {
        "documents": shown,
        "older_names": services().documents.names({one.replaces for one in shown if one.replaces}),
        "count": count,
        "size": size,
        "state_counts": {
            name: number for name, number in counts.items() if name in ("", state) or (number and name != "failed")
        },
        "unreadable": counts["failed"],
        "has_guide": bool(services().documents.guide()),
        "page": page,
        "pages": pages,
        "sort": sort,
        "state_filter": state,
        "list_params": _list_params(),
        "tag": tag,
        "sought_documents": sought,
        "deleted": _deleted(),
        "in_drawer": request.args.get("drawer") == "1",
        "tags": services().documents.tags(),
        "unfamiliar": unfamiliar_documents(services().documents, services().chunks, services().embedders),
        "sources": services().sources.states() if identity().may_manage else [],
        "libraries": services().libraries.all() if identity().person else [],
    } | frame(None)
    # The tag changes with anything shown to the person asking.
    who = identity().person, identity().may_manage, language().code, sorted(request.cookies.items())
    return library | {"etag": hashlib.sha256(encode((library, who), enc_hook=repr)).hexdigest()[:20]}


def _deleted() -> list[Document]:
    ids = ids_of("deleted", request.args.getlist("deleted"))
    return [one for one in services().documents.trashed(MAX_DOCUMENT_IDS) if one.id in ids] if ids else []


def _drawn(library: dict[str, Any], refused: Sequence[Refused] = (), sent: int = 0) -> str:
    return render_template(
        drawer("documents.html"),
        listed_at=lambda **changes: url_for("document_pages.documents", **_list_params() | changes),
        install_multilingual=command_for_extra("multilingual"),
        refused=refused,
        sent=sent,
        **library,
    )


def _list_params() -> dict[str, Any]:
    """Return the address's parameters for the list, so that an action leads back to it."""
    return {name: request.args[name] for name in ("tag", "q", "state", "sort", "page") if request.args.get(name)}


def _to_library(**more: Any) -> Response:
    page = "library_report" if request.args.get("from") == "report" else "documents"
    return to_page(f"document_pages.{page}", **_list_params(), **more)


blueprint.add_app_template_test(document_status.is_askable, "askable")
blueprint.add_app_template_test(document_status.is_retryable, "retryable")
for words in (document_status.kind_of, document_status.state_of, document_status.reason_of, document_status.in_units):
    blueprint.add_app_template_filter(words)
