"""Conversations that are shared by a link: made and taken back by their owner, read by who is signed in."""

from __future__ import annotations

import secrets
from typing import cast

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for

from rag_assistant.records import Source, Turn
from rag_assistant.web.identity import note_for_audit
from rag_assistant.web.markdown.render import render_markdown
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.services import services, whole_services

blueprint = Blueprint("shared_pages", __name__)


@blueprint.get("/conversations/<int:conversation_id>/links")
def links(conversation_id: int) -> str:
    """Show the links to a conversation."""
    return _links_page(conversation_id)


@blueprint.post("/conversations/<int:conversation_id>/links")
def make(conversation_id: int) -> Response:
    """Make a link to a conversation and show it, once."""
    secret = secrets.token_urlsafe(32)
    made = services().links.make(conversation_id, secret, request.form.get("sources") == "true")
    note_for_audit(f"made link {made.id}", f"conversation {conversation_id}")
    link = url_for("shared_pages.shared", link=secret, _external=True)
    return make_response(_links_page(conversation_id, link))


@blueprint.post("/conversations/<int:conversation_id>/links/<int:link_id>/end")
def take_back(conversation_id: int, link_id: int) -> Response:
    """Let a link lead nowhere any more."""
    services().links.take_back(conversation_id, link_id)
    note_for_audit(f"took link {link_id} back", f"conversation {conversation_id}")
    return cast(Response, redirect(url_for("shared_pages.links", conversation_id=conversation_id), 303))


@blueprint.get("/shared")
def shared() -> str:
    """Show a shared conversation, with sources if its owner says so and as far as the reader may read them."""
    owner_id, link = whole_services().links.owner_of(request.args.get("link", ""))
    theirs = whole_services().of_person(owner_id, False)
    conversation = theirs.conversations.get(link.conversation_id)
    turns = [turn for turn in theirs.turns.every(conversation.id) if turn.status not in ("running", "erased")]
    drawn = [render_markdown(turn.answer) for turn in turns]
    sources = [_readable(turn) if link.with_sources else [] for turn in turns]
    return render_template(
        "shared.html",
        title=conversation.title,
        owner=whole_services().accounts.get(owner_id).name,
        shown=list(zip(turns, drawn, sources, strict=True)),
        **frame(None),
    )


def _readable(turn: Turn) -> list[Source]:
    """Return what an answer cites of the documents that whoever asks may read."""
    cited = [source for source in turn.sources if source.cited]
    hidden = services().documents.missing({source.document_id for source in cited})
    return [source for source in cited if source.document_id not in hidden]


def _links_page(conversation_id: int, made: str | None = None) -> str:
    found = services().conversations.get(conversation_id)
    return render_template("links.html", links=services().links.of(conversation_id), made=made, **frame(found))
