"""The JSON API of archives: exporting and importing conversations."""

from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO

from flask import Blueprint, Response, jsonify, request, send_file

from rag_assistant.records.errors import InvalidRequest, UnderMaintenance, UnsupportedContentType
from rag_assistant.records.validation import shown as shown_value
from rag_assistant.records.views import data_of, view_of
from rag_assistant.web.api.documents import FORM_OVERHEAD_BYTES
from rag_assistant.web.request_parsing import content_type_said, flag_asked
from rag_assistant.web.routing import ASK, READ, services
from rag_assistant.web.schemas import ImportAnswer, ImportedConversation

blueprint = Blueprint("archive_api", __name__, url_prefix="/api")


# Content types of a body that is the file itself.
FILE_TYPES = ("application/json", "application/x-ndjson", "application/zip")


@blueprint.get("/export", policy=READ, params=("files",), answer="application/zip")
def export() -> Response:
    """Return all your conversations in an archive that an import reads back.

    It names the documents you can read; with ``files=1`` their files are included.
    """
    from rag_assistant.conversations.exchange.files import archived_conversations, archived_documents, pack_archive

    own = services()
    documents = archived_documents(own.documents, own.library.open_file if flag_asked("files") else None)
    packed = TemporaryFile(dir=own.data_dir)  # noqa: SIM115 - closed when it has been sent
    try:
        # It is complete before the first byte is sent.
        pack_archive(packed, documents, archived_conversations(own.exchange), own.notes.archived())
        packed.seek(0)
        return send_file(packed, "application/zip", as_attachment=True, download_name="rag-assistant.zip")
    except BaseException:
        packed.close()
        raise


@blueprint.post("/conversations/import", policy=ASK, answer=ImportAnswer, file=True)
def import_conversations() -> Response:
    """Import the conversations in a file; existing ones are skipped.

    The file is an export of ChatGPT or Open WebUI, or an archive of ours, whose documents aren't added. It may also be
    the body itself.
    """
    return jsonify(data_of(import_sent_file()))


def import_sent_file() -> ImportAnswer:
    """Import the conversations in the file of a request. Raises InvalidRequest, MalformedBody, BodyTooLarge."""
    from rag_assistant.conversations.exchange.files import read_confined
    from rag_assistant.conversations.exchange.importing import import_conversations

    own = services()
    settings = own.settings.current
    if settings.maintenance:
        raise UnderMaintenance
    max_bytes = settings.max_upload_mb * 1_000_000
    request.max_content_length = max_bytes + FORM_OVERHEAD_BYTES
    with TemporaryFile(dir=own.data_dir) as file:
        copyfileobj(_sent_file(), file)
        file.seek(0)
        with read_confined(file, max_bytes, settings.extraction_timeout_seconds, own.data_dir) as export:
            stores = own.exchange, own.documents, own.notes
            outcomes, notes = import_conversations(export, *stores, settings.retention_days)
    imported, skipped = (
        [view_of(ImportedConversation, one) for one in outcomes if one.new is new] for new in (True, False)
    )
    return ImportAnswer(
        imported=imported, skipped=skipped, unreadable=export.unreadable, mended=export.mended, notes=notes
    )


def _sent_file() -> IO[bytes]:
    """Return the file of a form, or a body that is one. Raises UnsupportedContentType, InvalidRequest."""
    if request.mimetype in FILE_TYPES:
        return request.stream
    if request.mimetype != "multipart/form-data":
        raise UnsupportedContentType(
            f'{content_type_said()}; it must be {", ".join(FILE_TYPES)}, or multipart/form-data with the field "file".'
        )
    names = [*request.form, *(name for name, _ in request.files.items(multi=True))]
    if names != ["file"] or "file" not in request.files:
        raise InvalidRequest(
            f'The form has the fields {shown_value(names)}; it must have one file, "file", and nothing else.'
        )
    return request.files["file"].stream
