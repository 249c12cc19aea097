"""The JSON API of conversations: creating, listing, changing, exporting and erasing them; and what the model sees."""

import json
from datetime import UTC, datetime
from typing import Any, get_args

from flask import Blueprint, Response, jsonify, make_response, request
from msgspec.structs import replace

from rag_assistant.conversations.commands import run_command
from rag_assistant.conversations.compaction import operation_in_words
from rag_assistant.conversations.exchange.export import FORMATS, as_json, as_markdown
from rag_assistant.conversations.retention import trash_date
from rag_assistant.history import HistoryStrategy
from rag_assistant.records import EVERYTHING, MAX_INT32, Conversation, views
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.retrieval.tokenize import query_words
from rag_assistant.web.api.paging import PAGE, PAGE_PARAMS, cursor_of, number_before, page_response, parse_cursor
from rag_assistant.web.request_bodies import (
    ChangeConversationBody,
    CommandBody,
    NewConversationBody,
    SummariseBody,
    SummaryBody,
)
from rag_assistant.web.request_parsing import (
    flag_asked,
    history_limit_asked,
    one_of,
    page_limit,
    read_body,
    read_optional_body,
    whole_number,
)
from rag_assistant.web.routing import ASK, READ, services
from rag_assistant.web.schemas import FoundConversation, ViewAnswer, ViewedConversation

blueprint = Blueprint("conversations_api", __name__, url_prefix="/api/conversations")

STRATEGIES: tuple[HistoryStrategy, ...] = get_args(HistoryStrategy)


@blueprint.get(
    "",
    policy=READ,
    params=(*PAGE_PARAMS, "q", "pinned", "archived", "deleted", "project_id"),
    answer={"conversations": list[FoundConversation], **PAGE},
)
def conversations() -> Response:
    """Return the conversations, most recently used first; with ``q``, those that contain these words, and where.

    ``pinned=1`` selects pinned ones, ``pinned=0`` the others, ``archived=1`` archived ones, which are in no other list,
    ``deleted=1`` those in the trash, ``project_id`` those of a project.
    """
    limit, pinned, deleted = page_limit(), flag_asked("pinned"), flag_asked("deleted")
    archived, project_id = bool(flag_asked("archived")), whole_number("project_id", None, 1, MAX_INT32)
    if "q" in request.args:
        if other := next((name for name in request.args if name not in ("q", "limit")), None):
            raise InvalidRequest(f"q searches all conversations; it can't be given with {other}.")
        hits = services().conversations.find(query_words(request.args["q"]), limit)
        listed = [conversation_data(hit.conversation) | {"turn": hit.turn} for hit in hits]
        return page_response("conversations", listed, None)
    pinned = None if deleted else pinned
    page, following = listed_after(
        "cursor", limit, pinned=pinned, deleted=bool(deleted), archived=archived, project_id=project_id
    )
    return page_response("conversations", [conversation_data(one) for one in page], following)


@blueprint.post("", policy=ASK, answer=views.ConversationAnswer, status=201, body=NewConversationBody, optional=True)
def new_conversation() -> Response:
    """Create an empty conversation."""
    body = read_optional_body(NewConversationBody)
    conversation = services().conversations.create(body.title, body.project_id)
    return make_response(jsonify(conversation_data(conversation)), 201)


@blueprint.get("/<int:conversation_id>", policy=READ, answer=ViewedConversation)
def conversation(conversation_id: int) -> Response:
    """Return a conversation, with what the model sees of it; HEAD shows by its ETag whether anything is new."""
    tag = services().branches.etag(conversation_id)
    response = Response() if request.method == "HEAD" else shown(conversation_id)
    response.headers["ETag"] = tag
    return response


@blueprint.patch("/<int:conversation_id>", policy=ASK, answer=ViewedConversation, body=ChangeConversationBody)
def change_conversation(conversation_id: int) -> Response:
    """Rename, pin, archive or move a conversation, or set its overrides and the documents it is about."""
    body = read_body(ChangeConversationBody)
    scope = body.scope(services().conversations.get(conversation_id).scope)
    services().documents.check_scope(scope or EVERYTHING)
    services().conversations.change(
        conversation_id,
        title=body.title,
        own=body.own(),
        pinned=body.pinned,
        archived=body.archived,
        scope=scope,
        project_id=body.given("project_id"),
    )
    return shown(conversation_id)


@blueprint.delete("/<int:conversation_id>", policy=ASK, status=204)
def delete_conversation(conversation_id: int) -> Response:
    """Move a conversation to the trash; ``restore`` brings it back."""
    services().conversations.delete(conversation_id)
    return make_response("", 204)


@blueprint.post("/<int:conversation_id>/restore", policy=ASK, answer=views.ConversationAnswer)
def restore_conversation(conversation_id: int) -> Response:
    """Restore a deleted conversation."""
    return jsonify(conversation_data(restored(conversation_id)))


@blueprint.post("/<int:conversation_id>/purge", policy=ASK, status=204)
def purge_conversation(conversation_id: int) -> Response:
    """Erase a conversation permanently."""
    services().eraser.erase_conversation(conversation_id)
    return make_response("", 204)


@blueprint.get("/<int:conversation_id>/turns", policy=READ, params=PAGE_PARAMS, answer="TurnsAnswer")
def turns(conversation_id: int) -> Response:
    """Return a page of turns, oldest first: the latest ones, or those before ``cursor``."""
    page = services().turns.page(conversation_id, page_limit(), number_before())
    following = page[0].number if page and page[0].number > 1 else None
    total = services().conversations.get(conversation_id).turns
    corrections = services().corrections.of(page)
    return page_response("turns", [views.turn_data(turn, corrections) for turn in page], following, total=total)


@blueprint.get("/<int:conversation_id>/export", policy=READ, params=("format",), answer="text/markdown")
def export(conversation_id: int) -> Response:
    """Return the whole conversation as a file."""
    format_name = one_of("format", request.args.get("format", "markdown"), FORMATS)
    conversation = services().conversations.get(conversation_id)
    ending, media_type = FORMATS[format_name]
    parts = conversation, services().turns.every(conversation_id), services().versions.all
    pieces = as_markdown(*parts, services().corrections.of) if format_name == "markdown" else as_json(*parts)
    response = Response(pieces, content_type=media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="conversation-{conversation_id}.{ending}"'
    return response


@blueprint.get("/<int:conversation_id>/receipts", policy=READ, answer="application/x-ndjson")
def receipts(conversation_id: int) -> Response:
    """Return the receipts of all answers as a file, one per line: requests and answers."""
    receipts = services().versions.receipts(conversation_id)
    response = Response((json.dumps(one) + "\n" for one in receipts), mimetype="application/x-ndjson")
    response.headers["Content-Disposition"] = f'attachment; filename="receipts-{conversation_id}.ndjson"'
    return response


# --- what the model sees


@blueprint.get(
    "/<int:conversation_id>/preview", policy=READ, params=("max_history_turns", "strategy"), answer=ViewAnswer
)
def preview(conversation_id: int) -> Response:
    """Return what the model would see with another window or strategy; nothing changes."""
    strategy = one_of("strategy", request.args["strategy"], STRATEGIES) if "strategy" in request.args else None
    return jsonify(services().history_actions.view(conversation_id, history_limit_asked(), strategy).as_dict())


@blueprint.get("/<int:conversation_id>/operation", policy=READ, answer={"operation": dict[str, Any] | None})
def operation(conversation_id: int) -> Response:
    """Return the operation running on the conversation, or null."""
    running = services().conversations.get(conversation_id).operation
    return jsonify(operation=running and running | {"sentence": operation_in_words(running)})


@blueprint.post("/<int:conversation_id>/clear", policy=ASK, answer=ViewedConversation)
def clear(conversation_id: int) -> Response:
    """Hide everything so far from the model."""
    services().history.move_context_start(conversation_id, "clear")
    return shown(conversation_id)


@blueprint.post("/<int:conversation_id>/reset", policy=ASK, answer=ViewedConversation)
def reset(conversation_id: int) -> Response:
    """Clear, and restore the default settings."""
    services().history.move_context_start(conversation_id, "reset")
    return shown(conversation_id)


@blueprint.get("/<int:conversation_id>/compact", policy=READ, answer="BillAnswer")
def bill(conversation_id: int) -> Response:
    """Return what a summary of older turns may lose, and what of it is kept word for word; nothing changes."""
    return jsonify(services().history_actions.bill(conversation_id).as_dict())


@blueprint.post(
    "/<int:conversation_id>/compact", policy=ASK, answer=ViewedConversation, body=SummariseBody, optional=True
)
def compact(conversation_id: int) -> Response:
    """Summarise older turns with the model; responds when done."""
    services().history_actions.compact(conversation_id, read_optional_body(SummariseBody).wishes)
    return shown(conversation_id)


@blueprint.post("/<int:conversation_id>/undo", policy=ASK, answer=ViewedConversation)
def undo(conversation_id: int) -> Response:
    """Undo the last change to the model's view."""
    _, kind = services().history.undo(conversation_id)
    return shown(conversation_id, undone=kind)


@blueprint.put("/<int:conversation_id>/summary", policy=ASK, answer=ViewedConversation, body=SummaryBody)
def edit_summary(conversation_id: int) -> Response:
    """Replace the text of the summary that the model sees."""
    services().history_actions.edit_summary(conversation_id, read_body(SummaryBody).text)
    return shown(conversation_id)


@blueprint.post("/<int:conversation_id>/commands", policy=ASK, answer="CommandAnswer", body=CommandBody)
def command(conversation_id: int) -> Response:
    """Run a command such as /history, and return its result."""
    services().conversations.get(conversation_id)
    result = run_command(read_body(CommandBody).command, services().history_actions, conversation_id)
    view = services().history_actions.view(conversation_id)
    return jsonify(command=result.command, text=result.text, fold=result.fold, view=view.as_dict())


def listed_after(name: str, limit: int, **which: Any) -> tuple[list[Conversation], str | None]:
    """Return a page of conversations after the cursor in a parameter, and the cursor of the next one."""
    page = services().conversations.page(limit + 1, parse_cursor(name, request.args.get(name)), **which)
    last = page[limit - 1] if len(page) > limit else None
    return page[:limit], cursor_of(last.deleted_at or last.updated_at, last.id) if last else None


def restored(conversation_id: int) -> Conversation:
    """Restore a conversation so that retention doesn't move it to the trash again at once."""
    manager = services().conversations
    conversation = manager.restore(conversation_id)
    date = trash_date(conversation, services().settings.current)
    return manager.restore(conversation_id, as_used=True) if date and date < datetime.now(UTC) else conversation


def conversation_data(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as JSON, with the time when it moves to the trash if nobody uses it."""
    view = views.conversation_view(conversation)
    date = trash_date(conversation, services().settings.current)
    return views.data_of(view if conversation.deleted_at else replace(view, moves_to_trash_at=date))


def shown(conversation_id: int, **more: Any) -> Response:
    view = services().history_actions.view(conversation_id)
    data = view.as_dict()
    if data["summary"]:
        data["summary"]["lines"] = [
            {
                "turns": line.turns,
                "text": line.text,
                "corrections": [views.answer_data(views.CorrectionAnswer, one) for one in corrections],
            }
            for line, corrections in services().corrections.of_summary(view.conversation)
        ]
    return jsonify(conversation_data(view.conversation) | {"view": data} | more)
