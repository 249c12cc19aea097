"""Conversations and their turns, as stored."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, convert

from rag_assistant.records.accounts import Shared
from rag_assistant.records.answers import Disagreement, ErrorData, Source, Step, Support, steps_of
from rag_assistant.records.base import UNSET, Message, Unset, text_in
from rag_assistant.records.questions import AS_SET, EVERYTHING, AnswerOptions, ConversationSearch, Question, Scope

TurnStatus = Literal["running", "completed", "stopped", "interrupted", "failed", "erased"]
# The title of a conversation until its first question.
UNTITLED = "New conversation"
# Marks the result of a confirmed call, which the model no longer sees.
PURGED = "purged"
# How many of the last exchanges a follow-up question may refer to.
EXCHANGES = 3
# A question and its answer.
Exchange = tuple[str, str]


class Summary(Struct, frozen=True):
    """A text that stands for the turns ``first_turn`` to ``last_turn``, written by a model or a person."""

    id: int
    first_turn: int
    last_turn: int
    text: str
    written_by: str
    created_at: datetime


class Project(Shared, frozen=True, kw_only=True):
    """What conversations share: ``instructions`` for the model, and defaults for them.

    The owner and the person's number of ``conversations`` are only set in lists of projects.
    """

    instructions: str = ""
    scope: Scope = EVERYTHING
    max_history_turns: int | Unset | None = UNSET
    history_strategy: str | None = None
    on_overflow: str | None = None
    search_conversations: ConversationSearch | None = None
    notes: bool | None = None
    retention_days: int | Unset | None = UNSET
    conversations: int = 0


MAX_NOTE_CHARS = 1000


class Note(Struct, frozen=True):
    """A note with the turn it comes from, for all conversations or those of a project.

    ``pinned`` notes are sent with every question; inactive and superseded ones never. ``proposed`` ones come from a
    model or an import, and are inactive until a person accepts them.
    """

    id: int
    text: str
    created_at: datetime
    pinned: bool = False
    active: bool = True
    turn_id: int | None = None
    conversation_id: int | None = None
    turn: int | None = None
    project_id: int | None = None
    superseded_by: int | None = None
    proposed: bool = False


class Conversation(Struct, frozen=True):
    """A conversation with its counters, so that no figure needs a count over its messages.

    The model's view begins at turn ``view_start``; the counters of visible turns and messages count from there, and
    turns that a summary skipped. Nothing before ``context_start`` is sent, pinned or not. ``held_turns`` are pinned,
    await confirmation or were skipped; ``standing_runs`` are the turns left out until the next change, as in LeftOut,
    with ``made_room`` if a reset cleared them for the turn at the context start. ``UNSET`` or ``None``: not overridden
    here. ``branched_from`` has the origin's ``conversation_id`` and ``turn``. ``scope`` are the documents its questions
    are about, if set. ``listed`` ones are in the sidebar.
    """

    id: int
    title: str
    created_at: datetime
    updated_at: datetime
    turns: int
    visible_turns: int
    visible_messages: int
    max_history_turns: int | Unset | None = UNSET
    history_strategy: str | None = None
    on_overflow: str | None = None
    search_conversations: ConversationSearch | None = None
    notes: bool | None = None
    # Whether its owner has any.
    has_notes: bool = False
    context_start: int = 1
    view_start: int = 1
    decided_until: int = 0
    held_turns: int = 0
    standing_runs: tuple[dict[str, Any], ...] = ()
    summary: Summary | None = None
    pinned: bool = False
    branched_from: dict[str, Any] | None = None
    deleted_at: datetime | None = None
    scope: Scope = EVERYTHING
    listed: bool = True
    # A long operation in progress, such as {"what": "compact", "part": 1, "parts": 3}.
    operation: dict[str, Any] | None = None
    project: Project | None = None
    # An answer ended while nobody was watching.
    unread: bool = False
    # Not in the lists until somebody asks in it again.
    archived: bool = False

    @property
    def project_id(self) -> int | None:
        """The project it is in, if the person may use it."""
        return self.project.id if self.project else None

    @property
    def scope_asked(self) -> Scope:
        """Its project's scope, which applies if it has none of its own."""
        return self.scope or (self.project.scope if self.project else EVERYTHING)


class ListedConversation(Struct, frozen=True):
    """A conversation's entry in the sidebar."""

    id: int
    title: str
    updated_at: datetime
    pinned: bool = False
    branched_from: dict[str, Any] | None = None
    unread: bool = False
    # What its project overrides.
    retention_days: int | Unset | None = UNSET


class ConversationHit(Struct, frozen=True):
    """A search hit: ``text`` is from its turn number ``turn``; None if the title matched."""

    conversation: Conversation
    turn: int | None = None
    text: str = ""


class Rating(Struct, frozen=True):
    """A person's rating of answer ``version`` of a turn, and the expected answer, if one was given."""

    rating: Literal["up", "down"]
    version: int
    rated_at: datetime
    right_answer: str | None = None


class Turn(Struct, frozen=True):
    """A question with its answer and how the answer ended.

    ``search`` says how the documents were searched: ``query``, ``by`` (question, words or model),
    ``follow_up_context``, ``found``. ``iterations`` are the messages between question and answer: tool calls and their
    results. ``waiting`` is an action that awaits confirmation: ``call_id``, ``tool``, ``arguments``. ``notes`` are
    sentences about how the answer came about. ``version`` says which of its ``versions`` the answer is, from 1 on. An
    erased turn keeps only its number and when it was erased. ``rating`` may be of another version.
    ``retry_after_seconds`` is what is left of the time a failed endpoint asked for.
    """

    id: int
    conversation_id: int
    number: int
    status: TurnStatus
    question: str
    answer: str
    created_at: datetime
    finished_at: datetime | None = None
    max_history_turns: int | Unset | None = UNSET
    scope: Scope = EVERYTHING
    history: dict[str, Any] | None = None
    sources: tuple[Source, ...] = ()
    usage: dict[str, Any] | None = None
    model: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    on_overflow: str | None = None
    confirms_turn: int | None = None
    iterations: tuple[Message, ...] = ()
    waiting: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    pinned: bool = False
    excluded: bool = False
    purged: bool = False
    search: dict[str, Any] | None = None
    version: int = 1
    versions: int = 1
    erased_at: datetime | None = None
    rating: Rating | None = None
    retry_after_seconds: int | None = None
    options: AnswerOptions = AS_SET
    # The keys of the pictures attached to the question.
    images: tuple[str, ...] = ()
    # Calls of the caller's own tools.
    tool_calls: tuple[dict[str, Any], ...] = ()
    thoughts: dict[str, Any] = {}
    # Nobody was watching when its answer ended.
    unseen: bool = False

    @property
    def history_trimmed(self) -> bool:
        """Whether turns were left out, of this request or of what came with it, or the endpoint cut it."""
        if self.history is None:
            return False
        return bool(self.history["turns_dropped"] or self.history.get("notice") or self.history.get("endpoint"))

    @property
    def notice(self) -> str | None:
        """The notice that the model got with the turn, ``None`` if it got none."""
        if self.history is None or not (self.history["turns_dropped"] or self.history.get("notice")):
            return None
        return str(self.history.get("notice") or f"[History trimmed to last {self.history['turns_kept']} turns]")

    @property
    def may_be_seen(self) -> bool:
        """Whether it has an answer with text, and nothing hides it from the model."""
        return bool(self.answer.strip()) and not (self.excluded or self.purged)

    @property
    def has_confirmation(self) -> bool:
        """Whether a person had to confirm what it does, or has to; then no other answer can replace it."""
        return self.purged or self.waiting is not None or any(PURGED in message for message in self.iterations)

    @property
    def said_behind(self) -> list[Message]:
        """The messages after the question: the iterations, and the answer, if there is one."""
        return [*self.iterations, *([{"role": "assistant", "content": self.answer}] if self.answer else [])]

    @property
    def steps(self) -> list[Step]:
        """The tool calls with their results."""
        return steps_of(self.iterations)

    @property
    def support(self) -> Support:
        """What supports the answer.

        ``cited``: it cites passages. ``uncited``: it had passages and cites none. ``not_checked``: it had passages, but
        the server ended before the answering model was recorded. ``nothing_found``: the search found nothing.
        ``not_sent``: what was found didn't fit into the request. ``not_searched``: there was no search.
        """
        if self.sources:
            if any(source.cited for source in self.sources):
                return "cited"
            return "not_checked" if self.model is None else "uncited"
        if self.search is not None and self.search["found"]:
            return "not_sent"
        searched = self.search is not None or any(step.tool == "search_documents" for step in self.steps)
        return "nothing_found" if searched else "not_searched"

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """What documents state differently about what was answered."""
        return convert((self.search or {}).get("disagreements", ()) if self.answer else (), tuple[Disagreement, ...])

    @property
    def listed_sources(self) -> list[Source]:
        """The sources that the answer cites, or of which a disagreement is told."""
        numbers = {n for one in self.disagreements for some in one.passages for n in some}
        return [one for one in self.sources if one.cited or one.n in numbers]

    @property
    def doubts(self) -> int:
        """The number of doubtful citations."""
        return sum(len(source.doubts) for source in self.sources)

    @property
    def is_waiting(self) -> bool:
        """Whether it awaits confirmation."""
        return self.waiting is not None

    @property
    def pictures(self) -> int:
        """The number of pictures attached to the question."""
        return len(self.images)

    @property
    def error(self) -> ErrorData | None:
        """The error, if there was one."""
        if self.error_type is None:
            return None
        return ErrorData(self.error_type, self.error_message or "", retry_after_seconds=self.retry_after_seconds)


def turn_of(question: Question, conversation: Conversation, turn_id: int, created_at: datetime) -> Turn:
    """Return the turn of a question, the conversation's last one."""
    return Turn(
        id=turn_id,
        conversation_id=conversation.id,
        number=conversation.turns,
        status="running",
        question=question.text,
        answer="",
        created_at=created_at,
        max_history_turns=question.max_history_turns,
        scope=conversation.scope_asked if isinstance(question.scope, Unset) else question.scope,
        on_overflow=question.on_overflow,
        confirms_turn=question.confirms_turn,
        options=question.options,
        images=question.images,
    )


class AnswerVersion(Struct, frozen=True):
    """One of the answers to a turn's question; the ``chosen`` one is current."""

    version: int
    status: TurnStatus
    answer: str
    model: str | None
    sources: tuple[Source, ...]
    notes: tuple[str, ...]
    finished_at: datetime | None
    chosen: bool = False


class Branch(Struct, frozen=True):
    """A conversation that branches off another one before its turn ``turn``."""

    conversation_id: int
    title: str
    turn: int


class PastTurn(Struct, frozen=True):
    """A completed turn as the window needs it. ``waiting_call`` is the id of a tool call that awaits confirmation."""

    number: int
    messages: tuple[Message, ...]
    pinned: bool = False
    waiting_call: str | None = None
    # How many more are stored, of purged calls.
    purged_messages: int = 0


class RelatedTurn(Struct, frozen=True):
    """An earlier turn outside the window that matches a question's words.

    ``certainty``, from 0 to 1, says how likely the question is about it; ``why`` is the reason it is left out.
    """

    number: int
    question: str
    answer: str
    sources: tuple[Source, ...]
    certainty: float = 1.0
    why: str = "turn_limit"


def exchanges_of(messages: Iterable[Message]) -> list[Exchange]:
    """Return the questions of some messages, each with the last text that answers it."""
    exchanges: list[Exchange] = []
    for message in messages:
        text = text_in(message)
        if message["role"] == "user":
            exchanges.append((text, ""))
        elif message["role"] == "assistant" and exchanges and text:
            exchanges[-1] = (exchanges[-1][0], text)
    return exchanges
