"""Turns, documents and conversations as the API returns and OpenAPI describes them.

One shape for the API, events, exports, tools and the command line. A view takes its fields from the record by name; a
field with its default value is left out.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType, convert, field, to_builtins
from msgspec.structs import force_setattr, replace

from rag_assistant.records import answers
from rag_assistant.records.accounts import Access, Share
from rag_assistant.records.base import Message, Unset
from rag_assistant.records.conversations import Conversation, Project, Turn, TurnStatus
from rag_assistant.records.documents import DateOrigin, DocumentState
from rag_assistant.records.errors import ReceiptNotFound
from rag_assistant.records.questions import ConversationSearch, Scope

Overflow = Literal["trim", "ask", "compact", "reset", "continue"]
View = TypeVar("View", bound=Struct)
Ruled = TypeVar("Ruled", "ConversationAnswer", "ProjectAnswer")


def view_of(kind: type[View], record: Any) -> View:
    return convert(record, kind, from_attributes=True)


class PassageAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A passage of a document, its characters start to end. A passage of a conversation has no document."""

    document_id: int | None
    document: str
    page: int | None
    section: str | None
    start: int
    end: int
    text: str
    score: float
    date: str | None
    date_from: DateOrigin | None


class SourceAnswer(PassageAnswer, frozen=True):
    """A numbered passage that the model was given."""

    n: int
    cited: bool
    cited_in: int | None
    conversation_id: int | None
    turn: int | None
    doubts: list[answers.Doubt]
    offered: list[str]
    # A picture of its page was sent, too.
    page_image: bool = False

    def __post_init__(self) -> None:
        if self.turn is not None:
            force_setattr(self, "document_id", None)


class RatingAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person thinks of an answer."""

    rating: Literal["up", "down"]
    version: int
    right_answer: str | None
    rated_at: datetime


class CorrectionAnswer(answers.Correction, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A change since the answer to something that the answer rests on."""

    sentence: str


class TurnHead(Struct, frozen=True, kw_only=True):
    """The fields of every view of a turn."""

    conversation_id: int
    id: int = field(name="turn_id")
    number: int = field(name="turn")
    status: TurnStatus
    history_trimmed: bool
    notice: str | None
    history: answers.HistoryFigures | None
    model: str | None


class TurnStart(TurnHead, frozen=True, kw_only=True):
    """What is known of an answer before its first text."""

    question: str
    search: answers.SearchData | None
    sources: list[SourceAnswer]
    notes: list[str]
    pinned: bool
    excluded: bool
    purged: bool
    is_waiting: bool = field(name="waiting")
    version: int
    versions: int
    rating: RatingAnswer | None
    created_at: datetime


class StartEvent(TurnStart, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of an answer before its first text; trimmed and dropped repeat the two most wanted figures."""

    trimmed: bool = False
    dropped: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "trimmed", self.history_trimmed)
        force_setattr(self, "dropped", self.history.messages_dropped if self.history else 0)


class TurnAnswer(TurnStart, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question with its answer."""

    answer: str
    steps: list[answers.Step]
    support: answers.Support
    doubts: int
    usage: answers.Usage | None
    finished_at: datetime | None
    pictures: int = field(default=0, name="images")
    tool_calls: tuple[dict[str, Any], ...] = ()
    thoughts: dict[str, Any] = {}
    erased_at: datetime | None = None
    error: answers.ErrorData | None = None
    corrections: list[CorrectionAnswer] | None = None


class VersionAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the answers to a question."""

    version: int
    chosen: bool
    status: TurnStatus
    answer: str
    model: str | None
    sources: list[SourceAnswer]
    notes: list[str]
    finished_at: datetime | None


class RatedAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A rated question with the rated answer."""

    id: int = field(name="turn_id")
    conversation_id: int
    number: int = field(name="turn")
    question: str
    answer: str
    model: str | None
    rating: RatingAnswer | None


class ReceiptAnswer(TurnHead, frozen=True, kw_only=True):
    """What a model was sent for a turn, and what was left out."""

    usage: answers.Usage | None
    support: answers.Support
    doubts: int
    messages: list[Message] = field(default_factory=list)


class BranchedFrom(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a conversation branched off."""

    conversation_id: int
    turn: int


class ConversationAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A conversation in a list; its own settings appear where it has any."""

    id: int = field(name="conversation_id")
    title: str
    created_at: datetime
    updated_at: datetime
    turns: int
    pinned: bool
    scope: Scope | None
    own_window: int | UnsetType | None = field(default=UNSET, name="max_history_turns")
    project_id: int | None = None
    deleted_at: datetime | None = None
    archived: bool = False
    history_strategy: answers.Strategy | None = None
    on_overflow: Overflow | None = None
    search_conversations: ConversationSearch | None = None
    notes: bool | None = None
    branched_from: BranchedFrom | None = None
    # Set if retention_days applies, and nobody uses it until then.
    moves_to_trash_at: datetime | None = None


class SharedAnswer(Struct, frozen=True, kw_only=True):
    """The owner, and with whom it is shared."""

    name: str
    owner: str | None
    everyone: Access | None
    shares: list[Share]
    mine: bool
    writable: bool


class ProjectAnswer(SharedAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A project; its settings appear where it has any."""

    id: int = field(name="project_id")
    instructions: str
    conversations: int
    scope: Scope | None
    own_window: int | UnsetType | None = field(default=UNSET, name="max_history_turns")
    history_strategy: answers.Strategy | None = None
    on_overflow: Overflow | None = None
    search_conversations: ConversationSearch | None = None
    notes: bool | None = None
    own_retention: int | UnsetType | None = field(default=UNSET, name="retention_days")


class DocumentAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document and its progress."""

    id: int = field(name="document_id")
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
    created_at: datetime
    date: str
    date_from: DateOrigin
    replaces: int | None
    # Left out for people it isn't meant for.
    origin: str | UnsetType | None = UNSET
    library_id: int | UnsetType | None = UNSET
    new: bool | UnsetType = UNSET


def turn_view(turn: Turn, corrections: Mapping[int, Sequence[answers.Correction]] | None = None) -> TurnAnswer:
    """Return the API's view of a turn, with later corrections, if they were looked up."""
    view = view_of(TurnAnswer, turn)
    if corrections is None:
        return view
    return replace(view, corrections=[view_of(CorrectionAnswer, one) for one in corrections.get(turn.id, ())])


def turn_data(turn: Turn, corrections: Mapping[int, Sequence[answers.Correction]] | None = None) -> dict[str, Any]:
    return data_of(turn_view(turn, corrections))


def data_of(view: Struct) -> dict[str, Any]:
    data: dict[str, Any] = to_builtins(view)
    return data


def answer_data(kind: type[Struct], record: Any) -> dict[str, Any]:
    """Return a record as an answer of the API."""
    return data_of(view_of(kind, record))


def receipt_data(turn: Turn, body: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a receipt as in the API: the exact requests, what was left out, the figures. Raises ReceiptNotFound."""
    if body is None:
        raise ReceiptNotFound(turn.id)
    shown = {**body, "messages": messages_sent(body)}
    if body.get("search") is not None:
        shown["search"] = to_builtins(convert(body["search"], answers.SearchData))
    return answer_data(ReceiptAnswer, turn) | shown


def messages_sent(body: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a receipt's last request."""
    sent: list[Message] = body["request"]["messages"]
    return sent


def conversation_view(conversation: Conversation) -> ConversationAnswer:
    return _with_rules(ConversationAnswer, conversation)


def project_data(project: Project) -> dict[str, Any]:
    own = project.retention_days
    view = _with_rules(ProjectAnswer, project)
    return data_of(replace(view, own_retention=UNSET if isinstance(own, Unset) else own))


def _with_rules(kind: type[Ruled], record: Conversation | Project) -> Ruled:
    own = record.max_history_turns
    return replace(
        view_of(kind, record), scope=record.scope or None, own_window=UNSET if isinstance(own, Unset) else own
    )
