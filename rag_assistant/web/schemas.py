"""The API's answers, except for turns, conversations and documents, which are in records/views.py."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from rag_assistant.conversations.bill import BillItem
from rag_assistant.history.receipt import LeftOut
from rag_assistant.llm.connection_check import ConnectionCheck
from rag_assistant.records import Ability, Role, SourceState
from rag_assistant.records.answers import ErrorData, Step, Strategy
from rag_assistant.records.views import (
    ConversationAnswer,
    CorrectionAnswer,
    DocumentAnswer,
    Overflow,
    PassageAnswer,
    RatedAnswer,
    StartEvent,
    TurnAnswer,
    VersionAnswer,
)


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


class KeyAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public key for checking receipt files (Ed25519, in hexadecimal)."""

    public_key: str


class VersionsAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All answers to a question, oldest first."""

    versions: list[VersionAnswer]


class TokenEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text to append to the answer, or a replacement for the end of it."""

    text: str | UnsetType = UNSET
    keep: int | UnsetType = UNSET
    html: str | UnsetType = UNSET


class StateEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the answer is waiting for."""

    state: str
    message: str
    conversation_id: int
    turn_id: int
    turn: int


class StepEvent(Step, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call."""

    conversation_id: int
    turn_id: int
    turn: int


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list; next_cursor asks for the next page."""

    next_cursor: str | None


class TurnsAnswer(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of turns, oldest first; total counts all of them."""

    turns: list[TurnAnswer]
    total: int


class FoundConversation(ConversationAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation; turn is where the search words were found, null if in the title."""

    turn: int | UnsetType | None = UNSET


class ConversationsAnswer(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of conversations."""

    conversations: list[FoundConversation]


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


class BillAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a summary of some turns may lose; max_tokens of it can be kept."""

    first_turn: int
    last_turn: int
    max_tokens: int
    items: list[BillItemAnswer]


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


class OperationAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is running in a conversation, or null."""

    operation: dict[str, Any] | None


class CommandAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a command."""

    command: str
    text: str
    fold: bool
    view: ViewAnswer


class RatingsAnswer(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of rated questions."""

    ratings: list[RatedAnswer]


class DocumentsAnswer(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of documents."""

    documents: list[DocumentAnswer]


class OriginsAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All document sources."""

    sources: list[SourceState]


class TagsAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of documents with each tag."""

    tags: dict[str, int]


class TextAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text of a document, and the offsets of its pages."""

    document_id: int
    text: str
    page_starts: list[int]


class SearchAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The passages that retrieval finds."""

    query: str
    follow_up_context: str | None
    passages: list[PassageAnswer]


class ShareOfLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much was used, and the limit; null means no limit."""

    used: int
    limit: int | None


class LimitsAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's usage and limits."""

    questions_per_minute: ShareOfLimit
    running_answers: ShareOfLimit
    stored_bytes: ShareOfLimit
    tokens_per_day: ShareOfLimit


class AccountAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The caller, and what the request may do."""

    name: str
    role: Role
    scopes: list[Ability]
    limits: LimitsAnswer


class ModelTestAnswer(ConnectionCheck, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a connection test; models are those the endpoint lists."""

    ok: bool


class HealthAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server is alive."""

    status: Literal["ok"]


class ReadyAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of each part."""

    ready: bool
    parts: dict[str, str]
    settings_problem: str | None
    restart_required: list[str]


class SettingAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A setting; for a secret, only whether it is set."""

    name: str
    origin: str
    live: bool
    description: str
    value: Any | UnsetType = UNSET
    set: bool | UnsetType = UNSET


class SettingsAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings in force."""

    settings: list[SettingAnswer]
    problem: str | None
    restart_required: list[str]


class SettingsVersion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that changes with the settings."""

    version: str | int


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
