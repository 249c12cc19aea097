"""The JSON API of the connected model: whether it answers."""

from __future__ import annotations

from dataclasses import asdict

from flask import Blueprint, Response, jsonify

from rag_assistant.llm.connection_check import check_connection
from rag_assistant.web.request_parsing import NoFields, read_optional_json
from rag_assistant.web.services import services

blueprint = Blueprint("model_api", __name__, url_prefix="/api/model")


@blueprint.post("/test")
def test() -> Response:
    """Ask the endpoint of the settings for its models and for a word; no other address can be asked."""
    read_optional_json(NoFields)
    found = check_connection(services().models)
    return jsonify({"ok": found.problem is None} | asdict(found))
