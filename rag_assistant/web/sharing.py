"""Links to conversations, as the pages and the API make, read and revoke them."""

from __future__ import annotations

import secrets

from flask import url_for
from msgspec import Struct

from rag_assistant.records import ConversationLink, Source, Turn
from rag_assistant.web.identity import note_for_audit
from rag_assistant.web.services import services, whole_services


class SharedConversation(Struct, frozen=True):
    """A conversation as whoever has its link reads it: each turn with the sources that they may read."""

    title: str
    owner: str
    turns: tuple[tuple[Turn, tuple[Source, ...]], ...]


def make_link(conversation_id: int, with_sources: bool) -> tuple[ConversationLink, str]:
    """Make a link to a conversation; return it with its address, which nobody can show again."""
    secret = secrets.token_urlsafe(32)
    made = services().links.make(conversation_id, secret, with_sources)
    note_for_audit(f"made link {made.id}", f"conversation {conversation_id}")
    return made, url_for("shared_pages.shared", link=secret, _external=True)


def revoke_link(conversation_id: int, link_id: int) -> None:
    """Let a link lead nowhere any more."""
    services().links.revoke(conversation_id, link_id)
    note_for_audit(f"revoked link {link_id}", f"conversation {conversation_id}")


def read_shared(secret: str) -> SharedConversation:
    """Return what a link leads to, as it is now. Raises LinkNotFound."""
    owner_id, link = whole_services().links.owner_of(secret)
    theirs = whole_services().for_person(owner_id, changes_documents=False)
    conversation = theirs.conversations.get(link.conversation_id)
    turns = [turn for turn in theirs.turns.every(conversation.id) if turn.status not in ("running", "erased")]
    shown = tuple((turn, _readable(turn) if link.with_sources else ()) for turn in turns)
    return SharedConversation(conversation.title, whole_services().accounts.get(owner_id).name, shown)


def _readable(turn: Turn) -> tuple[Source, ...]:
    """Return what an answer cites of the documents that whoever asks may read."""
    cited = [source for source in turn.sources if source.cited]
    hidden = services().documents.missing({source.document_id for source in cited})
    return tuple(source for source in cited if source.document_id not in hidden)
