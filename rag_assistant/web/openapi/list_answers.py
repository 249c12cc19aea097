"""Lists, conversations, documents and the server, as types of answers; see turn_answers.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rag_assistant.account_records import Access
from rag_assistant.document_records import DocumentState
from rag_assistant.history import LeftOutReason
from rag_assistant.web.openapi.turn_answers import (
    EXACT,
    CorrectionAnswer,
    PassageAnswer,
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
class DocumentAnswer(TypedDict):
    """A document, and how far it has come."""

    document_id: int
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    state: DocumentState
    reason: str | None
    chunks: int
    embedded: int
    pages: int | None
    scanned_pages: int
    recognised_pages: int
    tags: list[str]
    created_at: str
    origin: NotRequired[str | None]
    replaces: int | None
    new: NotRequired[bool]
    library_id: NotRequired[int | None]


@EXACT
class DocumentsAnswer(Page):
    """A page of documents."""

    documents: list[DocumentAnswer]


@EXACT
class TagsAnswer(TypedDict):
    """How many documents have each tag."""

    tags: dict[str, int]


@EXACT
class ShareAnswer(TypedDict):
    """With whom a library is shared, and what they may do."""

    person: str
    access: Access


@EXACT
class LibraryAnswer(TypedDict):
    """A set of documents, whose it is, and with whom it is shared."""

    library_id: int
    name: str
    owner: str | None
    documents: int
    everyone: Access | None
    shares: list[ShareAnswer]
    mine: bool
    writable: bool


@EXACT
class LibrariesAnswer(TypedDict):
    """The libraries that may be read, the own ones first."""

    libraries: list[LibraryAnswer]


@EXACT
class TextAnswer(TypedDict):
    """The text of a document, and where its pages begin."""

    document_id: int
    text: str
    page_starts: list[int]


@EXACT
class SearchAnswer(TypedDict):
    """What retrieval finds."""

    query: str
    follow_up_context: str | None
    leans_on: str | None
    passages: list[PassageAnswer]


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


@EXACT
class CheckStep(TypedDict):
    """A step of the test of an endpoint."""

    name: Literal["models", "answer", "embeddings"]
    ok: bool
    message: str
    seconds: float


@EXACT
class ModelTestAnswer(TypedDict):
    """Whether the endpoints of the settings answer."""

    ok: bool
    base_url: str | None
    model: str | None
    models: list[str]
    steps: list[CheckStep]


@EXACT
class HealthAnswer(TypedDict):
    """The server is alive."""

    status: Literal["ok"]


@EXACT
class ReadyAnswer(TypedDict):
    """The state of each part."""

    ready: bool
    parts: dict[str, str]
    settings_problem: str | None
    restart_required: list[str]


@EXACT
class SettingAnswer(TypedDict):
    """A setting; of a secret only whether it is set."""

    name: str
    origin: str
    live: bool
    description: str
    value: NotRequired[Any]
    set: NotRequired[bool]


@EXACT
class SettingsAnswer(TypedDict):
    """All settings in force."""

    settings: list[SettingAnswer]
    problem: str | None
    restart_required: list[str]


@EXACT
class SettingsVersion(TypedDict):
    """A value that changes whenever the settings do."""

    version: str | int
