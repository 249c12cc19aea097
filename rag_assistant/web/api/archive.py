"""The JSON API of archives: one's own conversations out in one file, and conversations in."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify

from rag_assistant.conversations.exchange.importing import Outcome
from rag_assistant.web.archives import import_sent_file, send_archive
from rag_assistant.web.request_parsing import flag_asked
from rag_assistant.web.routing import ASK, READ
from rag_assistant.web.schemas import ImportAnswer

blueprint = Blueprint("archive_api", __name__, url_prefix="/api")


@blueprint.get("/export", policy=READ, params=("files",), answer="application/zip")
def export() -> Response:
    """Return all conversations of whoever asks in an archive that an import reads back.

    It names the documents that they may read; with ``files=1``, their files are in it.
    """
    return send_archive(with_files=bool(flag_asked("files")))


@blueprint.post(
    "/conversations/import",
    policy=ASK,
    answer=ImportAnswer,
    file=True,
    example={
        "conversationId": "one",
        "title": "Geese",
        "messages": [
            {"messageId": "1", "isCreatedByUser": True, "text": "What do geese do?"},
            {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "text": "They hiss."},
        ],
    },
)
def import_conversations() -> Response:
    """Import the conversations in a file; those that are here already are skipped.

    It is what ChatGPT, Open WebUI or LibreChat export, or an archive of ours, whose documents are not added.
    """
    found = import_sent_file()
    return jsonify(
        imported=[_outcome_data(one) for one in found.new],
        skipped=[_outcome_data(one) for one in found.known],
        unreadable=found.unreadable,
    )


def _outcome_data(one: Outcome) -> dict[str, Any]:
    return {"conversation_id": one.conversation_id, "title": one.title, "turns": one.turns}
