"""The API's answers that are made of our types, besides those of records/views.py; openapi/answers.json has others."""

from msgspec import UNSET, Struct, UnsetType

from rag_assistant.history.receipt import LeftOut
from rag_assistant.llm.connection_check import ConnectionCheck
from rag_assistant.records.answers import Strategy
from rag_assistant.records.views import ConversationAnswer, CorrectionAnswer, Overflow, StartEvent, TurnAnswer


class FoundConversation(ConversationAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation; turn is where the search words were found, null if in the title."""

    turn: int | UnsetType | None = UNSET


class ImportedConversation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation of an import file, as it was imported."""

    conversation_id: int
    title: str
    turns: int


class ImportAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of an import.

    Of the entries, unreadable are not conversations, and mended had characters that cannot be stored. Of the new notes,
    which are counted, none is sent before you accept it.
    """

    imported: list[ImportedConversation]
    skipped: list[ImportedConversation]
    unreadable: int
    mended: int
    notes: int


class SummaryLineAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a summary, with the turns it is about."""

    turns: list[int]
    text: str
    corrections: list[CorrectionAnswer]


class SummaryAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text sent in place of some turns."""

    first_turn: int
    last_turn: int
    text: str
    written_by: str
    created_at: str
    lines: list[SummaryLineAnswer] | UnsetType = UNSET


class ViewTokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Estimated tokens of what the model would see."""

    system: int
    tools: int
    summary: int
    history: int
    total: int
    limit: int | None


class ViewAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model would see of a conversation if you asked now."""

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
    left_out: list[LeftOut]
    sentence: str
    notice: str | None
    summary: SummaryAnswer | None
    undo: str | None
    tokens: ViewTokens


class ViewedConversation(ConversationAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation and what the model would see of it."""

    view: ViewAnswer
    undone: str | UnsetType = UNSET


class ModelTestAnswer(ConnectionCheck, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a connection test; models are those the endpoint lists."""

    ok: bool


# The events of a stream, each with its data.
EVENTS: dict[str, type | str] = {
    "start": StartEvent,
    "update": StartEvent,
    "token": "TokenEvent",
    "state": "StateEvent",
    "step": "StepEvent",
    "end": TurnAnswer,
    "error": TurnAnswer,
}
