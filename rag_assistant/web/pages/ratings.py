"""Ratings: the thumbs below an answer, as plain forms, and the page that lists them with their results."""

from datetime import datetime

from flask import Blueprint, Response, make_response, render_template, request

from rag_assistant.answering.scoring import figures_in_words, what_is_worse
from rag_assistant.records import MAX_INT32, Turn
from rag_assistant.records.errors import TurnNotRatable
from rag_assistant.web.api import turns as api
from rag_assistant.web.forms import as_form, to_its_turn, to_page
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.request_bodies import MAX_RIGHT_ANSWER_CHARS
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.routing import ASK, READ, services

blueprint = Blueprint("rating_pages", __name__)

RATINGS_SHOWN = 50


@blueprint.get("/ratings", policy=READ)
def ratings() -> str:
    """Show the rated answers, newest first, with the results of asking their questions again."""
    page = services().ratings.page(RATINGS_SHOWN + 1, whole_number("from", None, 1, MAX_INT32))
    older = page[RATINGS_SHOWN - 1].id if len(page) > RATINGS_SHOWN else None
    return render_template("ratings.html", rated=page[:RATINGS_SHOWN], older=older, **frame(None))


@blueprint.post("/turns/<int:turn_id>/again", policy=ASK)
def ask_again(turn_id: int) -> Response:
    """Ask a rated question again and show how the answers compare; a script gets that question alone."""
    services().turns.get(turn_id)
    rated = services().ratings.page(1, turn_id + 1)
    if not rated or rated[0].id != turn_id:
        raise TurnNotRatable("This answer is no longer rated.")
    with api.readers().place(), services().assistant.reserved():
        evaluated = services().evaluation.ask_again(rated[0])
    if "part" not in request.args:
        return to_page("rating_pages.ratings", _anchor=f"rated-{turn_id}")
    (turn,) = services().ratings.page(1, turn_id + 1)
    return make_response(render_template("_rated.html", turn=turn, evaluated=evaluated))


def rate(turn_id: int) -> Response:
    """Rate an answer, or remove its rating if nothing is chosen."""
    return api.unrate(turn_id) if request.form.get("rating") == "" else api.rate(turn_id)


blueprint.post("/turns/<int:turn_id>/rating", policy=ASK)(
    as_form(rate, lambda data: to_its_turn(data, at=data["turn"]))
)


@blueprint.app_template_filter()
def rated_as(turn: Turn) -> str | None:
    """Return the rating of a turn's current answer: up, down, or none."""
    rating = turn.rating
    return rating.rating if rating is not None and rating.version == turn.version else None


blueprint.app_context_processor(lambda: {"max_right_answer_chars": MAX_RIGHT_ANSWER_CHARS})
blueprint.add_app_template_filter(figures_in_words)
blueprint.add_app_template_filter(what_is_worse)
blueprint.add_app_template_filter(datetime.fromisoformat, "moment")
