"""The JSON API of shared conversations: links to them, and what is behind one."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify, make_response, request

from rag_assistant.records import ConversationLink, Source, Turn
from rag_assistant.records.errors import LinkNotFound
from rag_assistant.web.request_bodies import NewLinkBody
from rag_assistant.web.request_parsing import read_optional_json
from rag_assistant.web.routing import ASK_AS_PERSON, READ_AS_PERSON
from rag_assistant.web.schemas import LinksAnswer, NewLinkAnswer, SharedAnswer
from rag_assistant.web.services import services
from rag_assistant.web.sharing import make_link, read_shared, revoke_link

blueprint = Blueprint("sharing_api", __name__, url_prefix="/api")


@blueprint.get("/conversations/<int:conversation_id>/links", policy=READ_AS_PERSON, answer=LinksAnswer, accounts=True)
def links(conversation_id: int) -> Response:
    """Return the links to a conversation, the oldest first; no secret is among it."""
    return jsonify(links=[link_data(one) for one in services().links.of(conversation_id)])


@blueprint.post(
    "/conversations/<int:conversation_id>/links",
    policy=ASK_AS_PERSON,
    answer=NewLinkAnswer,
    status=201,
    body=NewLinkBody,
    optional=True,
    example={"with_sources": True},
    accounts=True,
)
def make(conversation_id: int) -> Response:
    """Make a link to a conversation; its address is told this once."""
    made, address = make_link(conversation_id, read_optional_json(NewLinkBody).with_sources)
    return make_response(jsonify(link_data(made) | {"url": address}), 201)


@blueprint.delete(
    "/conversations/<int:conversation_id>/links/<int:link_id>", policy=ASK_AS_PERSON, status=204, accounts=True
)
def revoke(conversation_id: int, link_id: int) -> Response:
    """Let a link lead nowhere any more."""
    revoke_link(conversation_id, link_id)
    return make_response("", 204)


@blueprint.get(
    "/shared", policy=READ_AS_PERSON, params=("link",), answer=SharedAnswer, query="link=secret", accounts=True
)
def shared() -> Response:
    """Return the conversation behind a link, as it is now, with the sources that whoever asks may read."""
    if "link" not in request.args:
        raise LinkNotFound
    found = read_shared(request.args["link"])
    return jsonify(title=found.title, owner=found.owner, turns=[_turn_data(*one) for one in found.turns])


def link_data(link: ConversationLink) -> dict[str, Any]:
    """Return a link as it is listed."""
    return {"link_id": link.id, "with_sources": link.with_sources, "created_at": link.created_at.isoformat()}


def _turn_data(turn: Turn, sources: tuple[Source, ...]) -> dict[str, Any]:
    return {
        "turn": turn.number,
        "question": turn.question,
        "answer": turn.answer,
        "created_at": turn.created_at.isoformat(),
        "sources": [{"n": one.n, "document": one.document, "page": one.page, "text": one.text} for one in sources],
    }
