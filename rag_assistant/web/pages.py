"""The pages. The server draws everything that can be read; scripts only make it quicker to use.

Each action of a page is a plain form here, so that asking, reading, uploading and deleting work without scripts.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from rag_assistant.commands import CommandResult, is_command, run_command
from rag_assistant.errors import InvalidRequest, OverflowDecisionNeeded
from rag_assistant.records import LARGEST_NUMBER, Conversation, Document, Turn
from rag_assistant.retrieval.words import query_words
from rag_assistant.validation import spells_number
from rag_assistant.web.bodies import ChangeConversationBody, QueryBody, checked, whole_number
from rag_assistant.web.documents_api import uploaded_file
from rag_assistant.web.markdown import render_markdown
from rag_assistant.web.services import services
from rag_assistant.web.system import readiness

blueprint = Blueprint("pages", __name__)

TURNS_SHOWN = 50
CONVERSATIONS_SHOWN = 100
CONVERSATIONS_FOUND = 50
DOCUMENTS_SHOWN = 200


@blueprint.get("/")
def start() -> str:
    """Show an empty conversation."""
    return conversation_page(None, [])


@blueprint.get("/conversations/<int:conversation_id>")
def conversation(conversation_id: int) -> str:
    """Show a conversation's latest turns, or those before the turn number ``before``."""
    before = whole_number("before", None, 1, LARGEST_NUMBER)
    found = services().conversations.get(conversation_id)
    return conversation_page(found, services().turns.page(conversation_id, TURNS_SHOWN, before))


@blueprint.post("/ask")
def ask() -> Response:
    """Take what was typed: a question, whose turn is shown, or a command, whose result is."""
    content: dict[str, Any] = {"question": request.form.get("question", "")}
    for name in ("conversation_id", "confirms_turn"):
        if request.form.get(name):
            content[name] = _number(name, request.form[name])
    if request.form.get("on_overflow"):
        content["on_overflow"] = request.form["on_overflow"]
    if is_command(content["question"]):
        return make_response(_command_page(content["question"], content.get("conversation_id")))
    body = checked(QueryBody, content)
    try:
        turn = services().assistant.ask(body.as_question(None))
    except OverflowDecisionNeeded as error:
        decision = {
            "message": error.details["sentence"],
            "question": body.question,
            "options": error.details["options"],
        }
        return make_response(_latest_page(body.conversation_id, decision=decision), 409)
    if request.form.get("remember") and body.on_overflow:
        services().conversations.change(turn.conversation_id, own={"on_overflow": body.on_overflow})
    return _to_turn(turn)


def _command_page(command: str, conversation_id: int | None) -> str:
    """Carry out a command and show what it did below the conversation."""
    if conversation_id is None and command.strip().lower() != "/help":
        raise InvalidRequest("There is no conversation yet. Ask something first.")
    if conversation_id is not None:
        services().conversations.get(conversation_id)
    result = run_command(command, services().history_actions, conversation_id or 0)
    return _latest_page(conversation_id, result=result)


@blueprint.post("/turns/<int:turn_id>/stop")
def stop(turn_id: int) -> Response:
    """End a running answer and show its turn."""
    return _to_turn(services().assistant.stop(turn_id))


@blueprint.post("/turns/<int:turn_id>/retry")
def retry(turn_id: int) -> Response:
    """Answer a failed question once more and show its turn."""
    return _to_turn(services().assistant.retry(turn_id))


@blueprint.get("/turns/<int:turn_id>")
def turn(turn_id: int) -> str:
    """Return the transcript's entry of one turn, for the script that puts it in its place."""
    found = services().turns.get(turn_id)
    return render_template("_turn.html", turn=found, view=services().history_actions.view(found.conversation_id))


@blueprint.get("/turns/<int:turn_id>/receipt")
def receipt(turn_id: int) -> str:
    """Show what the model saw for a turn, and what was left out."""
    found = services().turns.get(turn_id)
    body = services().turns.receipt(turn_id)
    return render_template(_drawer("receipt.html"), turn=found, receipt=body, back=_conversation_url(found))


@blueprint.post("/conversations/<int:conversation_id>/rename")
def rename(conversation_id: int) -> Response:
    """Give a conversation another title."""
    body = checked(ChangeConversationBody, {"title": request.form.get("title", "")})
    services().conversations.change(conversation_id, title=body.title)
    return _to_conversation(conversation_id)


@blueprint.post("/conversations/<int:conversation_id>/choices")
def choices(conversation_id: int) -> Response:
    """Set what a conversation decides for itself; an empty field leaves it to the settings."""
    said = request.form.get("max_history_turns", "").strip().lower()
    if said not in ("", "all") and not spells_number(said):
        raise InvalidRequest(
            f'max_history_turns is "{said}"; it must be a whole number, 0 or more, "all" for no limit, '
            "or nothing for what the settings say."
        )
    content = {
        "max_history_turns": "default" if not said else None if said == "all" else int(said),
        "history_strategy": request.form.get("history_strategy") or "default",
        "on_overflow": request.form.get("on_overflow") or "default",
    }
    services().conversations.change(conversation_id, own=checked(ChangeConversationBody, content).own())
    return _to_conversation(conversation_id)


@blueprint.post("/conversations/<int:conversation_id>/delete")
def delete_conversation(conversation_id: int) -> Response:
    """Put a conversation away and offer to bring it back."""
    services().conversations.delete(conversation_id)
    return redirect(url_for("pages.start", deleted=conversation_id), 303)


@blueprint.post("/conversations/<int:conversation_id>/restore")
def restore_conversation(conversation_id: int) -> Response:
    """Bring a deleted conversation back."""
    services().conversations.restore(conversation_id)
    return _to_conversation(conversation_id)


@blueprint.get("/documents")
def documents() -> str:
    """Show the library."""
    found = services().documents.page(DOCUMENTS_SHOWN, whole_number("before", None, 1, LARGEST_NUMBER))
    return render_template(_drawer("documents.html"), documents=found, **_frame(None))


@blueprint.post("/documents")
def add_document() -> Response:
    """Take a file from the form."""
    file, name, said = uploaded_file()
    services().library.accept(file, name, replaces=said.replaces, tags=said.tags)
    return redirect(url_for("pages.documents"), 303)


@blueprint.post("/documents/<int:document_id>/delete")
def delete_document(document_id: int) -> Response:
    """Delete a document for good."""
    services().library.remove(document_id)
    return redirect(url_for("pages.documents"), 303)


@blueprint.get("/documents/<int:document_id>")
def document(document_id: int) -> str:
    """Show a document's text with the passage from ``start`` to ``end`` marked."""
    found = services().documents.get(document_id)
    extracted = services().documents.text(document_id)
    length = len(extracted.text)
    start = min(whole_number("start", 0, 0, LARGEST_NUMBER) or 0, length)
    end = min(max(start, whole_number("end", start, 0, LARGEST_NUMBER) or 0), length)
    parts = (extracted.text[:start], extracted.text[start:end], extracted.text[end:])
    return render_template(_drawer("document.html"), document=found, parts=parts, **_frame(None))


def _latest_page(conversation_id: int | None, **more: Any) -> str:
    """Draw a conversation's latest turns with something more below them."""
    if conversation_id is None:
        return conversation_page(None, [], **more)
    found = services().conversations.get(conversation_id)
    return conversation_page(found, services().turns.page(conversation_id, TURNS_SHOWN), **more)


def conversation_page(
    shown: Conversation | None,
    turns: list[Turn],
    *,
    result: CommandResult | None = None,
    decision: dict[str, Any] | None = None,
) -> str:
    """Draw the page of a conversation, or of none yet.

    ``result`` is what a command did, ``decision`` a question that was refused until a person decides.
    """
    view = services().history_actions.view(shown.id) if shown else None
    return render_template(
        "conversation.html",
        turns=turns,
        view=view,
        result=result,
        decision=decision,
        has_documents=bool(services().documents.page(1)),
        deleted=whole_number("deleted", None, 1, LARGEST_NUMBER),
        erased=request.args.get("erased") == "1",
        refresh=any(turn.status == "running" for turn in turns),
        **_frame(shown),
    )


def _frame(shown: Conversation | None) -> dict[str, Any]:
    """Return what every page shows around its content."""
    parts = readiness(services())
    sought = request.args.get("q", "").strip()
    manager = services().conversations
    return {
        "conversation": shown,
        "sought": sought,
        "conversations": manager.find(query_words(sought), CONVERSATIONS_FOUND)
        if sought
        else manager.page(CONVERSATIONS_SHOWN),
        "built_in": services().models.uses_built_in(),
        "starting": [part for part, state in parts.items() if state == "starting"],
        "settings_problem": services().settings.problem,
        "settings": services().settings.current,
    }


def _drawer(template: str) -> str:
    """Return the template for the drawer if a script asks for it, else for a page of its own."""
    return f"_{template}" if request.args.get("drawer") == "1" else template


def _to_conversation(conversation_id: int) -> Response:
    return redirect(url_for("pages.conversation", conversation_id=conversation_id), 303)


def _to_turn(turn: Turn) -> Response:
    return redirect(_conversation_url(turn), 303)


def _conversation_url(turn: Turn) -> str:
    return url_for("pages.conversation", conversation_id=turn.conversation_id, _anchor=f"turn-{turn.number}")


def _number(name: str, text: str) -> int:
    if not spells_number(text):
        raise InvalidRequest(f'{name} is "{text}"; it must be a whole number, 1 or more.')
    return int(text)


@blueprint.app_template_filter()
def markdown(turn: Turn) -> str:
    """Draw a turn's answer."""
    return render_markdown(turn.answer, [source.n for source in turn.sources], f"source-{turn.number}")


@blueprint.app_template_filter()
def on_one_line(text: str) -> str:
    """Return a passage as one line, without the marks of Markdown headings."""
    return " ".join(word for word in text.split() if word.strip("#"))


@blueprint.app_template_filter()
def state_of(document: Document) -> str:
    """Return a document's state in words."""
    if document.state == "embedding":
        return f"searchable by words; embedding {document.embedded} of {document.chunks}"
    return {
        "queued": "waiting",
        "reading": "being read",
        "ready": "ready",
        "failed": f"failed: {document.reason}",
        "cancelled": "cancelled",
    }[document.state]
