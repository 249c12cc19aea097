"""What is one's own and what one shares, as types of answers; see turn_answers.py."""

from __future__ import annotations

from typing_extensions import TypedDict

from rag_assistant.records import Ability, Role
from rag_assistant.web.openapi.turn_answers import EXACT


@EXACT
class ShareOfLimit(TypedDict):
    """How much was used, and how much may be; null is no limit."""

    used: int
    limit: int | None


@EXACT
class LimitsAnswer(TypedDict):
    """What one person takes of what they may take."""

    questions_per_minute: ShareOfLimit
    running_answers: ShareOfLimit
    stored_bytes: ShareOfLimit
    tokens_per_day: ShareOfLimit


@EXACT
class AccountAnswer(TypedDict):
    """Who asks, and what this request may do."""

    name: str
    role: Role
    scopes: list[Ability]
    limits: LimitsAnswer


@EXACT
class LinkAnswer(TypedDict):
    """A link to a conversation."""

    link_id: int
    with_sources: bool
    created_at: str


@EXACT
class NewLinkAnswer(LinkAnswer):
    """A link that was just made: its url is told this once."""

    url: str


@EXACT
class LinksAnswer(TypedDict):
    """The links to a conversation, the oldest first."""

    links: list[LinkAnswer]


@EXACT
class SharedSource(TypedDict):
    """A passage that an answer cites."""

    n: int
    document: str
    page: int | None
    text: str


@EXACT
class SharedTurn(TypedDict):
    """A turn of a shared conversation."""

    turn: int
    question: str
    answer: str
    created_at: str
    sources: list[SharedSource]


@EXACT
class SharedAnswer(TypedDict):
    """A conversation as whoever has its link reads it."""

    title: str
    owner: str
    turns: list[SharedTurn]
