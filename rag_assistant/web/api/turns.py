"""The JSON API: questions and their answers, turns, search."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from flask import (
    Blueprint,
    Response,
    current_app,
    jsonify,
    make_response,
    render_template,
    request,
    stream_with_context,
)
from msgspec.structs import replace

from rag_assistant.answering.assistant import MAX_QUESTION_CHARS, WATCH_INTERVAL_SECONDS
from rag_assistant.answering.live import LAST_EVENTS, LiveTurn, end_position
from rag_assistant.answering.search import exchanges_seen
from rag_assistant.conversations.pictures import picture_in
from rag_assistant.conversations.viewed_history import SentHistory
from rag_assistant.conversations.window import load_window, rules_for
from rag_assistant.history.words import shifts
from rag_assistant.records import MAX_INT32, Event, Exchange, Turn, pictures_in, views
from rag_assistant.records.errors import InvalidRequest, NotSignedIn, PictureNotFound
from rag_assistant.records.validation import spells_number
from rag_assistant.web import request_parsing
from rag_assistant.web.api.events import HEADERS, Readers, collect, drawn_frames, frame
from rag_assistant.web.api.paging import PAGE, PAGE_PARAMS, number_before, page_response
from rag_assistant.web.errors import answer_with_error
from rag_assistant.web.i18n.languages import ENGLISH
from rag_assistant.web.identity import identity
from rag_assistant.web.languages import in_words_of, language
from rag_assistant.web.markdown.blocks import Blocks
from rag_assistant.web.pages.turn_context import Around, is_library_empty
from rag_assistant.web.request_bodies import ChangeTurnBody, QueryBody, RatingBody, RetryBody, TemporaryBody
from rag_assistant.web.routing import ASK, READ, services
from rag_assistant.web.schemas import EVENTS

blueprint = Blueprint("api", __name__, url_prefix="/api")


@blueprint.post("/query", policy=ASK, answer=views.TurnAnswer, body=QueryBody, headers=("Idempotency-Key",))
def query() -> Response:
    """Answer a question: the same events as the stream, collected."""
    request_parsing.take_pictures()
    question = request_parsing.read_body(QueryBody).as_question(request_parsing.idempotency_key())
    with readers().place():
        turn = services().assistant.ask(question)
        data = collect(while_let_in(services().assistant.follow(turn.id)))
    # The status of its error marks an incomplete answer.
    return answer_with_error(data) if "error" in data else jsonify(data)


@blueprint.post(
    "/query/stream", policy=ASK, params=("html",), body=QueryBody, headers=("Idempotency-Key",), events=EVENTS
)
def query_stream() -> Response:
    """Answer a question as a stream of events."""
    drawn = request_parsing.flag_asked("html") is True
    request_parsing.take_pictures()
    question = request_parsing.read_body(QueryBody).as_question(request_parsing.idempotency_key(), interactive=drawn)
    with readers().place() as leaving:
        return stream(services().assistant.ask(question), 0, drawn, leaving)


@blueprint.post("/query/temporary", policy=ASK, params=("html",), body=TemporaryBody, events=EVENTS)
def temporary_query() -> Response:
    """Answer a question of a conversation that is sent along, as a stream of events. Nothing is stored."""
    drawn, body = request_parsing.flag_asked("html") is True, request_parsing.read_body(TemporaryBody)
    question = body.question_about(body.question, on_overflow=body.on_overflow)
    with readers().place() as leaving:
        live = services().assistant.ask_stateless(question, SentHistory(body.as_messages()))
        leaving.callback(live.call.stop)  # Nobody reconnects to it.
        events = while_let_in(services().assistant.follow_live(live))
        response = _streamed(_with_its_turn(events, live) if drawn else events, drawn, leaving)
        response.response = stream_with_context(response.iter_encoded())
        return response


def _with_its_turn(events: Iterator[Event | None], live: LiveTurn) -> Iterator[Event | None]:
    """Yield the events of a turn that isn't stored, the last one with the turn and its receipt as HTML."""
    for event in events:
        if event is not None and event.name in LAST_EVENTS and "turn_id" in event.data:
            around = Around(shifts([live.turn]), {}, False, False, {}, is_library_empty([live.turn]))
            html = render_template("turn.html", turn=live.turn, around=around, receipt=live.receipt)
            event = replace(event, data=event.data | {"html": html})
        yield event


@blueprint.get("/turns/<int:turn_id>/images/<int:number>", policy=READ, answer="image/*")
def image(turn_id: int, number: int) -> Response:
    """Return a picture attached to a question, unchanged; those of pages sent with it have the numbers after that."""
    pictures = services().history.pictures(services().turns.get(turn_id))
    if number > len(pictures) and (receipt := services().turns.receipt(turn_id)):
        questions = [one for one in receipt["request"]["messages"] if one["role"] == "user"]
        pictures = pictures_in(questions[-1]) if questions else ()
    if not 1 <= number <= len(pictures):
        raise PictureNotFound(turn_id, len(pictures), number)
    kind, content = picture_in(pictures[number - 1], "image")
    response = make_response(content)
    response.headers["Content-Type"] = f"image/{kind}"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


@blueprint.get("/turns/<int:turn_id>", policy=READ, answer=views.TurnAnswer)
def turn(turn_id: int) -> Response:
    """Return a turn as it is now."""
    turn = services().turns.get(turn_id)
    return jsonify(views.turn_data(turn, services().corrections.of([turn])))


@blueprint.get("/turns/<int:turn_id>/stream", policy=READ, params=("html",), headers=("Last-Event-ID",), events=EVENTS)
def turn_stream(turn_id: int) -> Response:
    """Follow a turn from the client's last event."""
    turn = services().turns.get(turn_id)
    last_event_id, drawn = request.headers.get("Last-Event-ID", ""), request_parsing.flag_asked("html") is True
    after = int(last_event_id) if spells_number(last_event_id) else 0
    if turn.status != "running" and after == end_position(turn):
        return Response(status=204)  # For EventSource: a client that has seen the end must not reconnect.
    with readers().place() as leaving:
        return stream(turn, after, drawn, leaving)


@blueprint.post("/turns/<int:turn_id>/stop", policy=ASK, answer=views.TurnAnswer)
def stop(turn_id: int) -> Response:
    """Stop a running answer; the text so far is kept."""
    return jsonify(views.turn_data(services().assistant.stop(turn_id)))


@blueprint.post(
    "/turns/<int:turn_id>/retry", policy=ASK, answer=views.TurnAnswer, status=202, body=RetryBody, optional=True
)
def retry(turn_id: int) -> Response:
    """Answer a failed question again; follow its stream."""
    body = request_parsing.read_optional_body(RetryBody)
    return make_response(jsonify(views.turn_data(services().assistant.retry(turn_id, body.quotes))), 202)


@blueprint.post(
    "/turns/<int:turn_id>/regenerate", policy=ASK, answer=views.TurnAnswer, status=202, body=RetryBody, optional=True
)
def regenerate(turn_id: int) -> Response:
    """Regenerate the last answer of a conversation; the current one is kept as a version."""
    body = request_parsing.read_optional_body(RetryBody)
    return make_response(jsonify(views.turn_data(services().assistant.regenerate(turn_id, body.quotes))), 202)


@blueprint.get("/turns/<int:turn_id>/versions", policy=READ, answer={"versions": list[views.VersionAnswer]})
def versions(turn_id: int) -> Response:
    """Return the answers to a turn's question, oldest first."""
    return jsonify(versions=[views.answer_data(views.VersionAnswer, one) for one in services().versions.all(turn_id)])


@blueprint.post("/turns/<int:turn_id>/versions/<int:version>/choose", policy=ASK, answer=views.TurnAnswer)
def choose_version(turn_id: int, version: int) -> Response:
    """Make another of its answers the turn's current one."""
    services().turns.get(turn_id)
    return jsonify(views.turn_data(services().versions.choose(turn_id, version)))


@blueprint.patch("/turns/<int:turn_id>", policy=ASK, answer=views.TurnAnswer, body=ChangeTurnBody)
def change_turn(turn_id: int) -> Response:
    """Pin a turn, so that the model always sees it, or exclude it; or undo that."""
    body = request_parsing.read_body(ChangeTurnBody)
    services().turns.get(turn_id)
    return jsonify(views.turn_data(services().history.mark(turn_id, pinned=body.pinned, excluded=body.excluded)))


@blueprint.delete("/turns/<int:turn_id>", policy=ASK, params=("permanently",), answer=views.TurnAnswer)
def erase_turn(turn_id: int) -> Response:
    """Erase a turn permanently, with everything derived from it."""
    if not request_parsing.flag_asked("permanently"):
        raise InvalidRequest(
            "A turn that is deleted is erased permanently, with its copies in branches and the summaries made of it. "
            "If you want that, add permanently=1. To hide it from the model only, set excluded."
        )
    return jsonify(views.turn_data(services().eraser.erase(turn_id)))


@blueprint.get("/turns/<int:turn_id>/receipt", policy=READ, answer=views.ReceiptAnswer)
def receipt(turn_id: int) -> Response:
    """Return what the model was sent for this turn, and what was left out."""
    return jsonify(views.receipt_data(services().turns.get(turn_id), services().turns.receipt(turn_id)))


@blueprint.get(
    "/search",
    policy=READ,
    params=("q", "limit", "document_id", "tag", "after", "before", "conversation_id"),
    answer={"query": str, "follow_up_context": str | None, "passages": list[views.PassageAnswer]},
)
def search() -> Response:
    """Return what retrieval finds for a query, without an answer."""
    text = request_parsing.text_asked("q", MAX_QUESTION_CHARS)
    if not text:
        raise InvalidRequest("q is empty; give the words to search for, such as /api/search?q=history+window.")
    limit, scope = request_parsing.page_limit(default=10, highest=100), request_parsing.scope_asked()
    services().documents.check_scope(scope)
    conversation_id = request_parsing.whole_number("conversation_id", None, 1, MAX_INT32)
    exchanges: Sequence[Exchange] = []
    if conversation_id is not None:
        conversation, settings = services().conversations.get(conversation_id), services().settings.current
        rules = rules_for(conversation, settings)
        window = load_window(services().history, conversation, conversation.turns + 1, rules, settings)
        exchanges = exchanges_seen(window, settings)
    search_query = services().retriever.follow_up(text, exchanges, scope)
    hits = services().retriever.search(search_query, limit, scope)
    passages = [views.answer_data(views.PassageAnswer, passage) for passage in hits]
    return jsonify(query=text, follow_up_context=search_query.context or None, passages=passages)


def readers() -> Readers:
    """Return the limit on connections that wait for answers."""
    bound: Readers = current_app.extensions["readers"]
    return bound


def stream(turn: Turn, after: int, drawn: bool, leaving: ExitStack) -> Response:
    """Return the stream of a turn, whose id is in X-Turn-Id.

    ``drawn``, for the page, it begins with the whole answer so far, and its tokens carry HTML.
    """
    response = _streamed(while_let_in(services().assistant.follow(turn.id, 0 if drawn else after)), drawn, leaving)
    response.headers["X-Turn-Id"] = str(turn.id)
    return response


def _streamed(events: Iterator[Event | None], drawn: bool, leaving: ExitStack) -> Response:
    spoken = language()
    if spoken is not ENGLISH:
        events = (event and replace(event, data=in_words_of(spoken, event.data)) for event in events)
    response = Response(drawn_frames(events, Blocks()) if drawn else map(frame, events), headers=HEADERS)
    response.call_on_close(leaving.pop_all().close)
    return response


def while_let_in(events: Iterator[Event | None]) -> Iterator[Event | None]:
    """Return the events for as long as the person may sign in; then the last one says why."""
    asking, accounts = identity(), services().accounts
    return events if asking.person is None else _while_open(events, lambda: accounts.is_open(asking))


def _while_open(events: Iterator[Event | None], is_open: Callable[[], bool]) -> Iterator[Event | None]:
    looked_at = time.monotonic()
    for event in events:
        if time.monotonic() - looked_at >= WATCH_INTERVAL_SECONDS:
            if not is_open():
                yield Event("error", {"error": NotSignedIn().as_dict()})
                return
            looked_at = time.monotonic()
        yield event


@blueprint.get("/ratings", policy=READ, params=(*PAGE_PARAMS,), answer={"ratings": list[views.RatedAnswer], **PAGE})
def ratings() -> Response:
    """Return the rated questions, newest first, each with the rated answer."""
    limit = request_parsing.page_limit()
    page = services().ratings.page(limit + 1, number_before())
    following = page[limit - 1].id if len(page) > limit else None
    return page_response("ratings", [views.answer_data(views.RatedAnswer, turn) for turn in page[:limit]], following)


@blueprint.put("/turns/<int:turn_id>/rating", policy=ASK, answer=views.TurnAnswer, body=RatingBody)
def rate(turn_id: int) -> Response:
    """Rate a turn's current answer."""
    body = request_parsing.read_body(RatingBody)
    return jsonify(views.turn_data(services().ratings.rate(turn_id, body.rating, body.given("right_answer"))))


@blueprint.delete("/turns/<int:turn_id>/rating", policy=ASK, answer=views.TurnAnswer)
def unrate(turn_id: int) -> Response:
    """Remove a turn's rating."""
    return jsonify(views.turn_data(services().ratings.remove(turn_id)))
