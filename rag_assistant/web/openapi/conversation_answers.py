"""Lists and conversations, as types of answers; see turn_answers.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rag_assistant.history import LeftOutReason
from rag_assistant.web.openapi.turn_answers import (
    EXACT,
    CorrectionAnswer,
    RatingAnswer,
    Strategy,
    TurnAnswer,
)

Overflow = Literal["trim", "ask", "compact", "reset", "continue"]


class Page(TypedDict):
    """A page of a list; next_cursor is where the next one begins."""

    next_cursor: str | None
    next_before: int | str | None


@EXACT
class TurnsAnswer(Page):
    """A page of turns, oldest first; total counts them all."""

    turns: list[TurnAnswer]
    total: int


@EXACT
class ScopeData(TypedDict):
    """The documents that questions are about."""

    document_ids: list[int]
    tags: list[str]


@EXACT
class BranchedFrom(TypedDict):
    """Where a conversation branched off."""

    conversation_id: int
    turn: int


@EXACT
class ConversationAnswer(TypedDict):
    """A conversation, as it is listed."""

    conversation_id: int
    title: str
    created_at: str
    updated_at: str
    turns: int
    pinned: bool
    scope: ScopeData | None
    max_history_turns: NotRequired[int | None]
    deleted_at: NotRequired[str]
    history_strategy: NotRequired[Strategy]
    on_overflow: NotRequired[Overflow]
    branched_from: NotRequired[BranchedFrom]


@EXACT
class FoundConversation(ConversationAnswer):
    """A conversation; turn says where the words are that were looked for, null if in its title."""

    turn: NotRequired[int | None]


@EXACT
class ConversationsAnswer(Page):
    """A page of conversations."""

    conversations: list[FoundConversation]


@EXACT
class ImportedConversation(TypedDict):
    """A conversation of a file, as it is here."""

    conversation_id: int
    title: str
    turns: int


@EXACT
class ImportAnswer(TypedDict):
    """What became of the conversations of a file; unreadable entries of it are no conversations."""

    imported: list[ImportedConversation]
    skipped: list[ImportedConversation]
    unreadable: int


@EXACT
class LeftOutRun(TypedDict):
    """Turns that the model would not see, and why."""

    reason: LeftOutReason
    turns: int
    messages: int
    first_turn: int
    last_turn: int
    trimmed: bool


@EXACT
class SummaryLineAnswer(TypedDict):
    """A line of a summary, with the turns that it is about."""

    turns: list[int]
    text: str
    corrections: list[CorrectionAnswer]


@EXACT
class SummaryAnswer(TypedDict):
    """A text that stands for some turns."""

    first_turn: int
    last_turn: int
    text: str
    written_by: str
    created_at: str
    lines: NotRequired[list[SummaryLineAnswer]]


@EXACT
class ViewTokens(TypedDict):
    """Tokens of what the model would see; estimates."""

    system: int
    tools: int
    summary: int
    history: int
    total: int
    limit: int | None


@EXACT
class ViewAnswer(TypedDict):
    """What the model would see of a conversation if a question came now."""

    max_history_turns: int | None
    strategy: Strategy
    on_overflow: Overflow
    context_start: int
    first_visible_turn: int | None
    horizon: int | None
    has_horizon: bool
    kept_turns: list[list[int]]
    turns_kept: int
    turns_dropped: int
    left_out: list[LeftOutRun]
    sentence: str
    notice: str | None
    summary: SummaryAnswer | None
    undo: str | None
    tokens: ViewTokens


@EXACT
class ViewedConversation(ConversationAnswer):
    """A conversation with what the model would see of it."""

    view: ViewAnswer
    undone: NotRequired[str]


@EXACT
class OperationAnswer(TypedDict):
    """What runs on a conversation, or null."""

    operation: dict[str, Any] | None
    doing: dict[str, Any] | None


@EXACT
class CommandAnswer(TypedDict):
    """What a command did."""

    command: str
    text: str
    fold: bool
    view: ViewAnswer


@EXACT
class RatedAnswer(TypedDict):
    """A rated question with the answer that was rated."""

    turn_id: int
    conversation_id: int
    turn: int
    question: str
    answer: str
    model: str | None
    rating: RatingAnswer | None
    result: dict[str, Any] | None


@EXACT
class RatingsAnswer(Page):
    """A page of rated questions."""

    ratings: list[RatedAnswer]
