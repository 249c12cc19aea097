"""The API's answers, except for turns, conversations and documents, which are in records/views.py."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from rag_assistant.conversations.bill import BillItem
from rag_assistant.history.receipt import LeftOut
from rag_assistant.llm.connection_check import ConnectionCheck
from rag_assistant.records.answers import ErrorData, Step, Strategy
from rag_assistant.records.views import ConversationAnswer, CorrectionAnswer, Overflow, StartEvent, TurnAnswer


class ErrorAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error."""

    error: ErrorData


class Problem(Struct, frozen=True, kw_only=True):
    """An error in the shape of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str


class OpenAIErrorData(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What went wrong, in OpenAI's shape."""

    message: str
    type: str
    param: str | None
    code: str
    details: dict[str, Any] | UnsetType = UNSET


class OpenAIErrorAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error in OpenAI's shape."""

    error: OpenAIErrorData


class TokenEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text to append to the answer, or a replacement for the end of it."""

    text: str | UnsetType = UNSET
    keep: int | UnsetType = UNSET
    html: str | UnsetType = UNSET


class StateEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the answer is waiting for."""

    state: str
    message: str
    read_tokens: int | UnsetType = UNSET
    request_tokens: int | UnsetType = UNSET
    conversation_id: int
    turn_id: int
    turn: int


class StepEvent(Step, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call."""

    conversation_id: int
    turn_id: int
    turn: int


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


class BillItemAnswer(BillItem, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence that a summary may lose; keep says whether it stays word for word."""

    tokens: int


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


class ShareOfLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much was used, and the limit; null means no limit."""

    used: int | float
    limit: int | float | None


class LimitsAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's usage and limits."""

    questions_per_minute: ShareOfLimit
    running_answers: ShareOfLimit
    stored_bytes: ShareOfLimit
    tokens_per_day: ShareOfLimit
    cost: ShareOfLimit


class ModelTestAnswer(ConnectionCheck, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a connection test; models are those the endpoint lists."""

    ok: bool


class SettingAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A setting; for a secret, only whether it is set."""

    name: str
    origin: str
    live: bool
    description: str
    value: Any | UnsetType = UNSET
    set: bool | UnsetType = UNSET


# The events of a stream, each with its data.
EVENTS: dict[str, type] = {
    "start": StartEvent,
    "update": StartEvent,
    "token": TokenEvent,
    "state": StateEvent,
    "step": StepEvent,
    "end": TurnAnswer,
    "error": TurnAnswer,
}
