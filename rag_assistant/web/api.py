"""The JSON API: questions and their answers, turns, conversations, search."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flask import Blueprint, Response, current_app, jsonify, make_response, request

from rag_assistant.errors import InvalidRequest, ReceiptNotFound
from rag_assistant.records import LARGEST_NUMBER, Conversation, Turn, Unset
from rag_assistant.turn_view import turn_data
from rag_assistant.web.bodies import (
    ChangeConversationBody,
    NewConversationBody,
    NoFields,
    QueryBody,
    idempotency_key,
    page_limit,
    read_json,
    read_optional_json,
    whole_number,
)
from rag_assistant.web.errors import status_of_name
from rag_assistant.web.events import Readers, collect, event_stream, last_event_id
from rag_assistant.web.markdown import render_markdown
from rag_assistant.web.services import services

blueprint = Blueprint("api", __name__, url_prefix="/api")


@blueprint.post("/query")
def query() -> Response:
    """Answer a question: the same events as the stream, collected."""
    question = read_json(QueryBody).as_question(idempotency_key())
    readers().enter()
    try:
        turn = services().assistant.ask(question)
        return answer(collect(services().assistant.follow(turn.id)))
    finally:
        readers().leave()


@blueprint.post("/query/stream")
def query_stream() -> Response:
    """Answer a question as a stream of events."""
    question = read_json(QueryBody).as_question(idempotency_key())
    readers().enter()
    try:
        turn = services().assistant.ask(question)
        return stream(turn, 0)
    except BaseException:
        readers().leave()
        raise


@blueprint.get("/turns/<int:turn_id>")
def turn(turn_id: int) -> Response:
    """Return a turn as it is now."""
    return jsonify(turn_data(services().turns.get(turn_id)))


@blueprint.get("/turns/<int:turn_id>/stream")
def turn_stream(turn_id: int) -> Response:
    """Follow a turn from where the reader left off."""
    found = services().turns.get(turn_id)
    readers().enter()
    try:
        return stream(found, last_event_id(request.headers.get("Last-Event-ID")))
    except BaseException:
        readers().leave()
        raise


@blueprint.post("/turns/<int:turn_id>/stop")
def stop(turn_id: int) -> Response:
    """End a running answer; what is written is kept."""
    read_optional_json(NoFields)
    return jsonify(turn_data(services().assistant.stop(turn_id)))


@blueprint.post("/turns/<int:turn_id>/retry")
def retry(turn_id: int) -> Response:
    """Answer a failed question once more; follow it by its stream."""
    read_optional_json(NoFields)
    return make_response(jsonify(turn_data(services().assistant.retry(turn_id))), 202)


@blueprint.get("/turns/<int:turn_id>/receipt")
def receipt(turn_id: int) -> Response:
    """Return what the model was sent for this turn, and what was left out."""
    found = services().turns.get(turn_id)
    body = services().turns.receipt(turn_id)
    if body is None:
        raise ReceiptNotFound(turn_id)
    data = turn_data(found)
    return jsonify(
        {name: data[name] for name in ("turn_id", "conversation_id", "turn", "status", "history_trimmed", "notice")}
        | {"history": found.history, "usage": found.usage}
        | body
    )


@blueprint.get("/conversations")
def conversations() -> Response:
    """Return the conversations, the latest used first."""
    limit = page_limit()
    found = services().conversations.page(limit, whole_number("before", None, 1, LARGEST_NUMBER))
    return jsonify(
        conversations=[conversation_data(conversation) for conversation in found],
        next_before=found[-1].id if len(found) == limit else None,
    )


@blueprint.post("/conversations")
def new_conversation() -> Response:
    """Make an empty conversation."""
    made = services().conversations.create(read_optional_json(NewConversationBody).title)
    return make_response(jsonify(conversation_data(made)), 201)


@blueprint.get("/conversations/<int:conversation_id>")
def conversation(conversation_id: int) -> Response:
    """Return a conversation, with where the model's view of it begins."""
    found = services().conversations.get(conversation_id)
    return jsonify(conversation_data(found) | {"view": view_data(found)})


@blueprint.patch("/conversations/<int:conversation_id>")
def change_conversation(conversation_id: int) -> Response:
    """Rename a conversation, or set its own window."""
    body = read_json(ChangeConversationBody)
    manager = services().conversations
    if body.max_history_turns == "default":
        manager.follow_settings(conversation_id)
    changed = manager.change(conversation_id, title=body.title, max_history_turns=body.history_limit)
    return jsonify(conversation_data(changed) | {"view": view_data(changed)})


@blueprint.delete("/conversations/<int:conversation_id>")
def delete_conversation(conversation_id: int) -> Response:
    """Put a conversation away; ``restore`` brings it back."""
    services().conversations.delete(conversation_id)
    return make_response("", 204)


@blueprint.post("/conversations/<int:conversation_id>/restore")
def restore_conversation(conversation_id: int) -> Response:
    """Bring a deleted conversation back, whole."""
    read_optional_json(NoFields)
    return jsonify(conversation_data(services().conversations.restore(conversation_id)))


@blueprint.get("/conversations/<int:conversation_id>/turns")
def turns(conversation_id: int) -> Response:
    """Return a page of turns, oldest first, ending before the turn number ``before``."""
    limit = page_limit()
    found = services().turns.page(conversation_id, limit, whole_number("before", None, 1, LARGEST_NUMBER))
    return jsonify(
        turns=[turn_data(turn) for turn in found],
        next_before=found[0].number if found and found[0].number > 1 else None,
    )


@blueprint.get("/search")
def search() -> Response:
    """Return what retrieval finds for a query, without an answer."""
    text = request.args.get("q", "")
    if not text.strip():
        raise InvalidRequest('q is empty; give the words to search for, such as /api/search?q="history window".')
    conversation_id = whole_number("conversation_id", None, 1, LARGEST_NUMBER)
    if conversation_id is not None:
        services().conversations.get(conversation_id)
    found = services().retriever.search(text, page_limit(default=10, highest=100))
    passages = [{k: v for k, v in asdict(passage).items() if k != "chunk_id"} for passage in found]
    return jsonify(query=text, passages=passages)


def readers() -> Readers:
    """Return the bound on connections that wait for an answer."""
    return current_app.extensions.setdefault("readers", Readers(services().settings.current.max_running_answers))  # type: ignore[no-any-return]


def stream(turn: Turn, after: int) -> Response:
    """Return the stream of a turn; with ?html=1 its tokens also carry the answer as HTML, for the page."""
    events = services().assistant.follow(turn.id, after)
    if request.args.get("html") != "1":
        return event_stream(events, readers())
    before = services().turns.get(turn.id).answer[:after] if after else ""
    return event_stream(events, readers(), before, lambda text: str(render_markdown(text)))


def answer(data: dict[str, Any]) -> Response:
    """Return the JSON answer of a turn that has ended; the status says whether it failed."""
    status = status_of_name(data["error"]["type"]) if data["status"] == "failed" else 200
    return make_response(jsonify(data), status)


def conversation_data(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as it is listed; ``max_history_turns`` stands there if it has its own window."""
    data = {
        "conversation_id": conversation.id,
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "turns": conversation.turns,
    }
    if not isinstance(conversation.max_history_turns, Unset):
        data["max_history_turns"] = conversation.max_history_turns
    return data


def view_data(conversation: Conversation) -> dict[str, Any]:
    """Return what the model would see of a conversation if a question came now."""
    own = conversation.max_history_turns
    limit = services().settings.current.max_history_turns if isinstance(own, Unset) else own
    kept = conversation.visible_turns if limit is None else min(limit, conversation.visible_turns)
    return {
        "max_history_turns": limit,
        "first_visible_turn": services().turns.horizon(conversation.id, limit),
        "turns_kept": kept,
        "turns_dropped": conversation.visible_turns - kept,
    }
