"""A conversation, and its turns as they are kept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.records.accounts import Shared
from rag_assistant.records.answers import ErrorData, Source, Step, Support, steps_of
from rag_assistant.records.base import UNSET, Message, Unset, text_in
from rag_assistant.records.questions import AS_SET, EVERYTHING, AnswerOptions, ConversationSearch, Scope

TurnStatus = Literal["running", "completed", "stopped", "interrupted", "failed", "erased"]
# The title of a conversation until its first question gives it one.
UNTITLED = "New conversation"
# A question leans on so many of the exchanges just before it, if on any.
EXCHANGES = 3
# A question and its answer.
Exchange = tuple[str, str]


class Summary(Struct, frozen=True):
    """A text that stands for the turns ``first_turn`` to ``last_turn``, written by a model or by a person."""

    id: int
    first_turn: int
    last_turn: int
    text: str
    written_by: str
    created_at: datetime


class Project(Shared, frozen=True, kw_only=True):
    """What conversations have in common: ``instructions`` for the model, and what holds where one decides nothing.

    How many ``conversations`` of whoever asks are in it, and whose it is, is only told where projects are listed.
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


class Note(Struct, frozen=True):
    """What a person asked to be remembered, with the turn from which it is, for all conversations or a project's.

    ``pinned`` ones are sent with every question; those that are not ``active``, or that a newer one superseded, never.
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


class Conversation(Struct, frozen=True):
    """A conversation with its counters, so that no figure needs a count over its messages.

    The model's view of it begins at turn ``view_start``; the counters of visible turns and messages count from there.
    Nothing before ``context_start`` comes back, pinned or not. ``held_turns`` are pinned or wait for a person;
    ``standing_runs`` are the turns that stay left out until the next change, as LeftOut has them, with ``made_room``
    where a reset cleared them for the turn at the context start. What the conversation does not decide for itself is
    ``UNSET`` or ``None``. ``pinned`` ones stand first in the list; ``branched_from`` says where it branched off:
    ``conversation_id``, ``turn``. ``scope`` are the documents that its questions are about, if it says so itself.
    ``listed`` ones stand in the list beside the pages.
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
    # What is being done with it that takes its time, such as {"what": "compact", "part": 1, "parts": 3}.
    operation: dict[str, Any] | None = None
    project: Project | None = None
    # An answer ended while nobody looked.
    unread: bool = False
    # Not in the lists until somebody asks in it again.
    archived: bool = False

    @property
    def project_id(self) -> int | None:
        """The project that it is in, if whoever asks may use it."""
        return self.project.id if self.project else None

    @property
    def scope_asked(self) -> Scope:
        """The documents that its questions are about where they do not say it themselves."""
        return self.scope or (self.project.scope if self.project else EVERYTHING)


class ListedConversation(Struct, frozen=True):
    """What the list beside the pages shows of a conversation."""

    id: int
    title: str
    updated_at: datetime
    pinned: bool = False
    branched_from: dict[str, Any] | None = None
    unread: bool = False
    # What its project decides.
    retention_days: int | Unset | None = UNSET


class ConversationHit(Struct, frozen=True):
    """A conversation that a search found: ``text`` was said in its turn ``turn``; None where its title was the hit."""

    conversation: Conversation
    turn: int | None = None
    text: str = ""


class Rating(Struct, frozen=True):
    """What a person thinks of answer ``version`` of a turn, and which answer would be right, if that was said.

    ``result`` is what came of it when the question was last asked again, as JSON (``answering/evaluation.py``).
    """

    rating: Literal["up", "down"]
    version: int
    rated_at: datetime
    right_answer: str | None = None
    result: dict[str, Any] | None = None


class Turn(Struct, frozen=True):
    """A question with its answer and how the answer ended.

    ``search`` says how the documents were searched for it: ``query``, ``by`` (question, words or model),
    ``follow_up_context``, ``found``. ``iterations`` are the messages between the two: calls of tools and their results.
    ``waiting`` is an action that a person has to confirm first: ``call_id``, ``tool``, ``arguments``. ``notes`` are
    sentences about how the answer came about. ``version`` says which of its ``versions`` the answer is, from 1 on.
    Of an erased turn nothing is left but its place, and when it was erased. ``rating`` is that of one of the answers,
    which need not be this one. ``retry_after_seconds`` is what is left of the time that a failed endpoint asked for.
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
    # The keys of the pictures beside the question.
    images: tuple[str, ...] = ()
    # What the caller is to carry out, of its own tools.
    tool_calls: tuple[dict[str, Any], ...] = ()
    # Nobody followed its answer as that ended.
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
        """Whether it has an answer with text, and nothing keeps it from the model."""
        return bool(self.answer.strip()) and not (self.excluded or self.purged)

    @property
    def said_behind(self) -> list[Message]:
        """What was said behind the question: the iterations, and the answer, if there is one."""
        return [*self.iterations, *([{"role": "assistant", "content": self.answer}] if self.answer else [])]

    @property
    def steps(self) -> list[Step]:
        """The tool calls with their results."""
        return steps_of(self.iterations)

    @property
    def support(self) -> Support:
        """What the answer rests on.

        ``cited``: it names passages. ``uncited``: it had passages and names none. ``not_checked``: it had passages, and
        the server ended before it was kept which model answered. ``nothing_found``: the documents were searched in
        vain. ``not_sent``: what was found did not fit into the request. ``not_searched``: they were not searched.
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
    def doubts(self) -> int:
        """How many of its citations are doubtful."""
        return sum(len(source.doubts) for source in self.sources)

    @property
    def is_waiting(self) -> bool:
        """Whether it asks for a confirmation."""
        return self.waiting is not None

    @property
    def pictures(self) -> int:
        """How many pictures stand beside the question."""
        return len(self.images)

    @property
    def error(self) -> ErrorData | None:
        """What went wrong, if something did."""
        if self.error_type is None:
            return None
        return ErrorData(self.error_type, self.error_message or "", retry_after_seconds=self.retry_after_seconds)


class Correction(Struct, frozen=True):
    """What an answer rests on and was changed since: an earlier turn, a summary, or source ``n`` of the answer.

    In a line of a summary, ``turn`` is the number of the turn whose answer cites the source.
    """

    what: Literal["source", "turn", "summary"]
    change: Literal["changed", "deleted", "excluded", "erased", "edited"]
    turn: int | None = None
    n: int | None = None
    document: str | None = None

    @property
    def sentence(self) -> str:
        source = f"source {self.n}" + (f" of turn {self.turn}" if self.turn else "")
        return {
            "changed": f"“{self.document}” has changed since: {source} is no longer in it.",
            "deleted": f"“{self.document}” ({source}) has been deleted since.",
            "excluded": f"Turn {self.turn} was sent with this answer and has been excluded since.",
            "erased": f"Turn {self.turn} was sent with this answer and has been erased since.",
            "edited": "The summary sent with this answer has been edited since.",
        }[self.change]


class AnswerVersion(Struct, frozen=True):
    """One of the answers that a turn's question got; ``chosen`` is the one that stands in the turn."""

    version: int
    status: TurnStatus
    answer: str
    model: str | None
    sources: tuple[Source, ...]
    notes: tuple[str, ...]
    finished_at: datetime | None
    chosen: bool = False


class Branch(Struct, frozen=True):
    """A conversation that goes off another one before its turn ``turn``."""

    conversation_id: int
    title: str
    turn: int


class PastTurn(Struct, frozen=True):
    """A completed turn as the window needs it: its place in the conversation and its messages.

    ``waiting_call`` is the id of a tool call in it that waits for a person's word.
    """

    number: int
    messages: tuple[Message, ...]
    pinned: bool = False
    waiting_call: str | None = None


class RelatedTurn(Struct, frozen=True):
    """An earlier turn that is not in the window, found again by its words.

    ``certainty``, from 0 to 1, says how surely a question is about it; ``why`` is the reason for which it is left out.
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
