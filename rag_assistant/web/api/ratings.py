"""The JSON API of ratings: answers rated up or down, and the list of them."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rag_assistant.records.views import TurnAnswer, data_of, rated_view, turn_data
from rag_assistant.web.api.paging import PAGE_PARAMS, number_before, page_response
from rag_assistant.web.request_bodies import RatingBody
from rag_assistant.web.request_parsing import page_limit, read_json
from rag_assistant.web.routing import ASK, READ
from rag_assistant.web.schemas import RatingsAnswer
from rag_assistant.web.services import services

blueprint = Blueprint("ratings_api", __name__, url_prefix="/api")


@blueprint.get("/ratings", policy=READ, params=(*PAGE_PARAMS,), answer=RatingsAnswer)
def ratings() -> Response:
    """Return the rated questions, the newest first, each with the answer that was rated."""
    limit = page_limit()
    page = services().ratings.page(limit + 1, number_before())
    following = page[limit - 1].id if len(page) > limit else None
    return page_response("ratings", [data_of(rated_view(turn)) for turn in page[:limit]], following)


@blueprint.put(
    "/turns/<int:turn_id>/rating",
    policy=ASK,
    answer=TurnAnswer,
    body=RatingBody,
    example={"rating": "up", "right_answer": "50 MB."},
)
def rate(turn_id: int) -> Response:
    """Rate the answer that a turn shows."""
    body = read_json(RatingBody)
    return jsonify(turn_data(services().ratings.rate(turn_id, body.rating, body.right_answer_if_said)))


@blueprint.delete("/turns/<int:turn_id>/rating", policy=ASK, answer=TurnAnswer)
def unrate(turn_id: int) -> Response:
    """Take the rating of a turn back."""
    return jsonify(turn_data(services().ratings.remove(turn_id)))
