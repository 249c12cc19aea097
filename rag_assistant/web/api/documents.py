"""The JSON API of the library: add, list, show and delete documents."""

from typing import IO, Any

from flask import Blueprint, Response, jsonify, make_response, request, send_file
from msgspec import to_builtins

from rag_assistant.records import DOCUMENT_STATES, Document, SourceState
from rag_assistant.records.errors import InvalidRequest, UnsupportedContentType
from rag_assistant.records.reports import LibraryReport
from rag_assistant.records.views import DocumentAnswer, answer_data
from rag_assistant.web.api.paging import PAGE_PARAMS, number_before, page_response
from rag_assistant.web.identity import identity
from rag_assistant.web.request_bodies import ChangeDocumentBody, UploadFields, WebPageBody
from rag_assistant.web.request_parsing import (
    checked,
    content_type_said,
    form_fields,
    one_of,
    page_limit,
    read_body,
    text_asked,
)
from rag_assistant.web.routing import ADMIN, DOCUMENTS, READ, services
from rag_assistant.web.security import MAX_FORM_PARTS

blueprint = Blueprint("documents_api", __name__, url_prefix="/api/documents")

FORM_OVERHEAD_BYTES = 100_000


@blueprint.post("", policy=DOCUMENTS, answer=DocumentAnswer, status=202, body=UploadFields, form=True)
def add() -> Response:
    """Add a file; responds at once, and its state shows its progress."""
    ((file, name),), fields = uploaded_files(1)
    with file:
        document, new = services().library.accept(file, name, **fields.model_dump())
    return make_response(jsonify(visible_data(document) | {"new": new}), 202)


@blueprint.post("/archive", policy=DOCUMENTS, answer="AddArchiveAnswer", status=202, body=UploadFields, form=True)
def add_archive() -> Response:
    """Unpack a ZIP archive and add its files; refused ones are named."""
    ((file, name),), fields = uploaded_files(1)
    if fields.replaces:
        raise InvalidRequest("An archive cannot replace a document. Unpack it and add its file.")
    with file:
        added, refused = services().library.accept_archive(file, name, tags=fields.tags, library_id=fields.library_id)
    documents = [visible_data(document) | {"new": new} for document, new in added]
    return make_response(jsonify(documents=documents, refused=[{"name": n, "reason": why} for n, why in refused]), 202)


@blueprint.post("/web-page", policy=DOCUMENTS, answer=DocumentAnswer, status=202, body=WebPageBody)
def add_web_page() -> Response:
    """Fetch a web page and add it; a known one is fetched again."""
    body = read_body(WebPageBody)
    document, new = services().web_pages.add(services().library, body.url, body.tags, body.library_id)
    return make_response(jsonify(visible_data(document) | {"new": new}), 202)


@blueprint.post("/<int:document_id>/fetch", policy=DOCUMENTS, answer=DocumentAnswer, status=202)
def fetch_again(document_id: int) -> Response:
    """Fetch a web page again; a new version replaces it once it is ready."""
    document, new = services().web_pages.fetch_again(services().library, document_id)
    return make_response(jsonify(visible_data(document) | {"new": new}), 202)


@blueprint.get("", policy=READ, params=(*PAGE_PARAMS, "tag", "q", "state"), answer="DocumentsAnswer")
def documents() -> Response:
    """Return the documents, newest first; with ``q``, those whose name or a tag contains its words.

    ``tag`` and ``state`` select documents.
    """
    limit = page_limit()
    tag = request.args.get("tag")
    states = [one_of("state", state, DOCUMENT_STATES) for state in request.args.getlist("state")[:1]]
    page = services().documents.page(limit + 1, number_before(), tag=tag, sought=text_asked("q"), states=states)
    following = page[limit - 1].id if len(page) > limit else None
    return page_response("documents", [visible_data(document) for document in page[:limit]], following)


@blueprint.get("/sources", policy=ADMIN, answer={"sources": list[SourceState]})
def sources() -> Response:
    """Return the state of everything in ``document_sources``."""
    return jsonify(sources=to_builtins(services().sources.states()))


@blueprint.get("/report", policy=READ, answer=LibraryReport)
def report() -> Response:
    """Report what could be wrong with the library: copies, garbled or unread text, answers that are out of date."""
    return jsonify(to_builtins(services().reports.report(counts_others=identity().may_manage)))


@blueprint.get("/<int:document_id>", policy=READ, answer=DocumentAnswer)
def document(document_id: int) -> Response:
    """Return a document and its progress."""
    return jsonify(visible_data(services().documents.get(document_id)))


@blueprint.get("/tags", policy=READ, answer={"tags": dict[str, int]})
def tags() -> Response:
    """Return every tag with its number of documents."""
    return jsonify(tags=services().documents.tags())


@blueprint.patch("/<int:document_id>", policy=DOCUMENTS, answer=DocumentAnswer, body=ChangeDocumentBody)
def change(document_id: int) -> Response:
    """Rename a document, change its tags or its date, or move it to another library."""
    body = read_body(ChangeDocumentBody)
    if body.library_id is not None:
        services().documents.move(document_id, body.library_id)
    changed = services().documents.change(document_id, name=body.name, tags=body.tags, date=body.given("date"))
    return jsonify(visible_data(changed))


@blueprint.post("/<int:document_id>/cancel", policy=DOCUMENTS, answer=DocumentAnswer)
def cancel(document_id: int) -> Response:
    """Cancel processing; it can be retried."""
    return jsonify(visible_data(services().documents.cancel(document_id)))


@blueprint.post("/<int:document_id>/retry", policy=DOCUMENTS, answer=DocumentAnswer, status=202)
def retry(document_id: int) -> Response:
    """Process a document again: it failed, was cancelled, or is to be chunked differently."""
    return make_response(jsonify(visible_data(services().library.read_again(document_id))), 202)


@blueprint.get("/<int:document_id>/text", policy=READ, answer="TextAnswer")
def text(document_id: int) -> Response:
    """Return the extracted text, to which the offsets of sources refer."""
    extracted = services().documents.text(document_id)
    return jsonify(document_id=document_id, text=extracted.text, page_starts=extracted.page_starts)


@blueprint.delete("/<int:document_id>", policy=DOCUMENTS, status=204)
def delete(document_id: int) -> Response:
    """Delete a document, for searches at once."""
    services().library.remove(document_id)
    return make_response("", 204)


@blueprint.get("/<int:document_id>/file", policy=READ, answer="application/octet-stream")
def file(document_id: int) -> Response:
    """Return the original file, always as a download that a browser doesn't open."""
    document, opened = services().library.open_file(document_id)
    response = send_file(
        opened, mimetype="application/octet-stream", as_attachment=True, download_name=document.name, conditional=False
    )
    # A file in S3 has no local path from which these could be taken.
    response.content_length = document.size_bytes
    response.set_etag(document.sha256)
    response.make_conditional(request.environ, accept_ranges=True, complete_length=document.size_bytes)
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def uploaded_files(max_files: int) -> tuple[list[tuple[IO[bytes], str]], UploadFields]:
    """Return up to ``max_files`` files of a multipart form, each with its name, and the other fields.

    Raises UnsupportedContentType, InvalidRequest.
    """
    if request.mimetype != "multipart/form-data":
        raise UnsupportedContentType(f'{content_type_said()}; it must be multipart/form-data, field "file".')
    request.max_content_length = max_files * services().settings.current.max_upload_mb * 1_000_000 + FORM_OVERHEAD_BYTES
    request.max_form_parts = max_files + MAX_FORM_PARTS
    files = request.files.getlist("file")
    fields = ("file", *UploadFields.model_fields)
    unknown = [name for name in (*request.form, *request.files) if name not in fields]
    if unknown:
        raise InvalidRequest(f'Unknown field "{unknown[0]}". Allowed fields: {", ".join(fields)}.')
    named = [(file.stream, file.filename) for file in files if file.filename]
    if not 1 <= len(files) <= max_files or len(named) < len(files):
        allowed = "one file with a name" if max_files == 1 else f"1 to {max_files} files, each with a name"
        there = "1 file" if len(files) == 1 else f"{len(files)} files"
        nameless = " without a name" if len(named) < len(files) else ""
        raise InvalidRequest(f'The field "file" has {there}{nameless}; it must have {allowed}.')
    return named, checked(UploadFields, form_fields(UploadFields))


def visible_data(document: Document) -> dict[str, Any]:
    """Return a document as listed for the person asking."""
    data = answer_data(DocumentAnswer, document)
    if not identity().may_manage and not document.is_web_page:
        del data["origin"]  # A path on the server's machine.
    if identity().person is None:
        del data["library_id"]
    return data
