"""The JSON API of shared conversations: their links, and reading through one."""

import secrets
from datetime import datetime
from itertools import chain
from typing import Any

from flask import Blueprint, Response, jsonify, make_response, request, url_for
from msgspec import Struct, field

from rag_assistant.answering.figures import UNREAD
from rag_assistant.records import ConversationLink, Disagreement, SharedConversation
from rag_assistant.records.errors import LinkNotFound
from rag_assistant.records.views import CorrectionAnswer, answer_data, data_of, view_of
from rag_assistant.storage.accounts.libraries import SharedStore
from rag_assistant.web.identity import note_for_audit, signed_in
from rag_assistant.web.request_bodies import NewLinkBody, ShareBody
from rag_assistant.web.request_parsing import read_optional_body
from rag_assistant.web.routing import ASK_AS_PERSON, READ_AS_PERSON, services, whole_services

blueprint = Blueprint("sharing_api", __name__, url_prefix="/api")
LINKS = "/conversations/<int:conversation_id>/links"


class LinkAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A link to a conversation."""

    id: int = field(name="link_id")
    with_sources: bool
    created_at: datetime
    person: str | None


class NewLinkAnswer(LinkAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A link that was just made: its url is told this once, unless it is a person's."""

    url: str


class SharedSource(Struct, frozen=True, forbid_unknown_fields=True):
    """A passage that an answer cites, or that states something else, ``deleted`` with its document or not.

    ``date`` is its document's own.
    """

    n: int
    document: str
    own_date: str | None = field(name="date")
    page: int | None
    text: str
    deleted: bool = False


class SharedTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of a shared conversation; ``notes`` are those of figures that were not read."""

    turn: int
    question: str
    answer: str
    created_at: datetime
    sources: list[SharedSource]
    disagreements: list[Disagreement]
    corrections: list[CorrectionAnswer]
    notes: list[str]


class SharedAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation as whoever has its link reads it."""

    title: str
    owner: str
    turns: list[SharedTurn]


@blueprint.get(LINKS, policy=READ_AS_PERSON, answer={"links": list[LinkAnswer]})
def links(conversation_id: int) -> Response:
    """Return the links to a conversation, oldest first, without their secrets."""
    return jsonify(links=[answer_data(LinkAnswer, one) for one in services().links.of(conversation_id)])


@blueprint.post(LINKS, policy=ASK_AS_PERSON, answer=NewLinkAnswer, status=201, body=NewLinkBody, optional=True)
def make(conversation_id: int) -> Response:
    """Create a link to a conversation; its address is shown only once. For a ``person``, it replaces theirs."""
    body = read_optional_body(NewLinkBody)
    link, address = make_link(conversation_id, body.with_sources, body.person)
    return make_response(jsonify(answer_data(LinkAnswer, link) | {"url": address}), 201)


@blueprint.delete(f"{LINKS}/<int:link_id>", policy=ASK_AS_PERSON, status=204)
def revoke(conversation_id: int, link_id: int) -> Response:
    """Revoke a link."""
    services().links.revoke(conversation_id, link_id)
    note_for_audit(f"revoked link {link_id}", f"conversation {conversation_id}")
    return make_response("", 204)


@blueprint.get("/shared", policy=READ_AS_PERSON, params=("link",), answer=SharedAnswer)
def shared() -> Response:
    """Return the conversation behind a link, as it is now, with the sources you can read."""
    if "link" not in request.args:
        raise LinkNotFound
    return jsonify(data_of(read_shared(request.args["link"])))


@blueprint.get("/shared/conversations", policy=READ_AS_PERSON, answer={"conversations": list[SharedConversation]})
def shared_conversations() -> Response:
    """Return the conversations that others share with you by name, most recently used first."""
    return jsonify(conversations=[data_of(one) for one in whole_services().links.read_by(signed_in().id)])


def share_with(store: SharedStore[Any], kind: str, item_id: int, body: ShareBody) -> Any:
    """Let somebody use an item of this kind, or no more."""
    shared = store.share(item_id, body.person, body.access)
    note_for_audit(f"shared a {kind} with {body.person} ({body.access or 'no more'})", f"{kind} {item_id}")
    return shared


def make_link(conversation_id: int, with_sources: bool, person: str | None = None) -> tuple[ConversationLink, str]:
    """Create a link to a conversation, perhaps for a person alone; return it with its address."""
    secret = secrets.token_urlsafe(32)
    link = services().links.make(conversation_id, secret, with_sources, person)
    reader = f" for {link.person}" if link.person else ""
    note_for_audit(f"created link {link.id}{reader}", f"conversation {conversation_id}")
    return link, url_for("sharing_pages.shared", link=link.id if person else secret, _external=True)


def read_shared(link: str) -> SharedAnswer:
    """Return the conversation behind a link as it is now, with the sources the reader may read. Raises LinkNotFound."""
    owner_id, opened = whole_services().links.owner_of(link, signed_in().id)
    owners = whole_services().for_person(owner_id, changes_documents=False)
    conversation = owners.conversations.get(opened.conversation_id)
    turns = []
    answered = [turn for turn in owners.turns.every(conversation.id) if turn.status not in ("running", "erased")]
    corrections = owners.corrections.of(answered)
    for turn in answered:
        listed = turn.listed_sources if opened.with_sources else []
        hidden = services().documents.missing({source.document_id for source in listed})
        deleted = owners.documents.missing(hidden)
        views = {one.n: view_of(SharedSource, one) for one in listed if one.document_id not in hidden}
        # What a document states is told to whoever may read it.
        stated = [one for one in turn.disagreements if views.keys() >= set(chain(*one.passages))]
        changes = [view_of(CorrectionAnswer, one) for one in corrections[turn.id] if one.n is None or one.n in views]
        # Who could read it is unknown, so its name stays untold.
        gone = {
            one.n: SharedSource(one.n, "", None, None, "", deleted=True) for one in listed if one.document_id in deleted
        }
        sources = [one for _, one in sorted((views | gone).items())]
        readable = {one.document_id for one in listed} - set(hidden)
        unread = {UNREAD.format(n=one.page, name=one.document) for one in turn.sources if one.document_id in readable}
        shown = (sources, stated, changes, [note for note in turn.notes if note in unread])
        turns.append(SharedTurn(turn.number, turn.question, turn.answer, turn.created_at, *shown))
    return SharedAnswer(conversation.title, whole_services().accounts.people.get(owner_id).name, turns)
