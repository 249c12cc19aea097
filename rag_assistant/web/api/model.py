"""The JSON API of the connected endpoints: whether they answer."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify
from msgspec import to_builtins

from rag_assistant.web.routing import ADMIN
from rag_assistant.web.schemas import ModelTestAnswer
from rag_assistant.web.services import services

blueprint = Blueprint("model_api", __name__, url_prefix="/api/model")


@blueprint.post("/test", policy=ADMIN, answer=ModelTestAnswer, asks=True)
def test() -> Response:
    """Test the endpoints of the settings, step by step; no other address can be asked."""
    found = services().check_connection()
    return jsonify({"ok": found.ok} | to_builtins(found))
