"""Ratings on the pages, as plain forms."""

from __future__ import annotations

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from rag_assistant.records import Turn
from rag_assistant.web.request_parsing import MAX_RIGHT_ANSWER_CHARS, RatingBody, checked
from rag_assistant.web.services import services

blueprint = Blueprint("rating_pages", __name__)


@blueprint.post("/turns/<int:turn_id>/rating")
def rate(turn_id: int) -> Response:
    """Rate an answer, or take that back where nothing is chosen, and show its turn."""
    content = {name: request.form[name] for name in ("rating", "right_answer") if name in request.form}
    if content.get("rating") == "":
        rated = services().ratings.remove(turn_id)
    else:
        body = checked(RatingBody, content)
        rated = services().ratings.rate(turn_id, body.rating, body.right_answer_if_said)
    at, anchor = rated.number, f"turn-{rated.number}"
    return redirect(url_for("pages.conversation", conversation_id=rated.conversation_id, at=at, _anchor=anchor), 303)


@blueprint.app_template_filter()
def rated_as(turn: Turn) -> str | None:
    """Return how the answer that a turn shows was rated: up, down, or not at all."""
    rating = turn.rating
    return rating.rating if rating is not None and rating.version == turn.version else None


@blueprint.app_context_processor
def limits() -> dict[str, int]:
    """Give the templates the length of a right answer."""
    return {"max_right_answer_chars": MAX_RIGHT_ANSWER_CHARS}
