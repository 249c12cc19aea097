"""The plain records that every layer passes to the next.

Nothing here knows Flask, SQL or a model. A record is frozen: who wants another value makes another record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

# What goes to the model and nothing else: a dict in the OpenAI chat format.
Message = dict[str, Any]

TurnStatus = Literal["running", "completed", "stopped", "interrupted", "failed", "erased"]
# What an id or a position can be at most in every database that we keep them in.
MAX_INT32 = 2**31 - 1

# The name under which answers are given where no model is connected.
QUOTES = "quotes"

# The title of a conversation until its first question gives it one.
UNTITLED = "New conversation"

# A question leans on so many of the exchanges just before it, if on any.
EXCHANGES = 3


@dataclass(frozen=True, slots=True)
class Unset:
    """The type of ``UNSET``: "nobody said anything", where ``None`` already means "no limit"."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Scope:
    """Which documents are searched: those named that also have one of the tags; an empty part leaves all.

    Where one of the named is the newer version of another, it is not searched before it has taken that one's place.
    """

    document_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.document_ids or self.tags)

    def as_dict(self) -> dict[str, list[Any]] | None:
        """Return the scope as it is kept and shown, ``None`` where it leaves all documents."""
        return {"document_ids": list(self.document_ids), "tags": list(self.tags)} if self else None

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any] | None) -> Scope:
        """Return the scope that ``as_dict`` kept."""
        return cls(tuple(kept["document_ids"]), tuple(kept["tags"])) if kept else cls()

    def holds(self, document_id: int, tags: Iterable[str]) -> bool:
        """Tell whether a document with these tags is one of those that are searched."""
        named = not self.document_ids or document_id in self.document_ids
        return named and (not self.tags or bool(set(self.tags) & set(tags)))


EVERYTHING = Scope()

AnswerMode = Literal["documents", "tools", "plain"]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What a caller wants of one answer; ``None`` leaves it to the settings.

    ``mode``: the documents are searched for the question, or the model searches with tools, or neither.
    ``instructions`` are told the model behind ours.
    """

    mode: AnswerMode | None = None
    instructions: str | None = None
    max_answer_tokens: int | None = None
    temperature: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what is wanted, as it is kept; what is left to the settings is not there."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not None}


AS_SET = AnswerOptions()


@dataclass(frozen=True, slots=True)
class Source:
    """A passage shown under an answer as number ``n``; ``cited`` when the answer refers to ``[n]``.

    ``doubts`` are the citations of it that it does not seem to carry, as JSON: ``nth`` of them, ``problem``,
    ``missing`` and ``carried_by``; ``offered`` are sentences that it carries and that cite nothing
    (``retrieval/claims.py``). ``cited_in`` is the number of the earlier turn whose answer cited it, for a passage that
    comes along for that alone.
    """

    n: int
    document_id: int
    document: str
    page: int | None
    start: int
    end: int
    text: str
    score: float
    section: str | None = None
    cited: bool = False
    doubts: Sequence[dict[str, Any]] = ()
    offered: Sequence[str] = ()
    cited_in: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the source as it is kept and shown."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Question:
    """One question as a caller asked it, checked for form but not yet accepted."""

    text: str
    conversation_id: int | None = None
    max_history_turns: int | Unset | None = UNSET
    # Nothing said: what the conversation is about.
    scope: Scope | Unset = UNSET
    idempotency_key: str | None = None
    # What to do if turns would be left out; None: as the conversation or the settings say.
    on_overflow: str | None = None
    # The turn whose question "shall I?" this one answers with yes or no.
    confirms_turn: int | None = None
    # The turn whose question this one is in other words: it is asked in a branch that goes off before that turn.
    edits_turn: int | None = None
    # Whether a person asked it, on the page or in a terminal, and not a program.
    interactive: bool = False
    options: AnswerOptions = AS_SET


@dataclass(frozen=True, slots=True)
class Summary:
    """A text that stands for the turns ``first_turn`` to ``last_turn``, written by a model or by a person."""

    id: int
    first_turn: int
    last_turn: int
    text: str
    written_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its counters, so that no figure needs a count over its messages.

    The model's view of it begins at turn ``view_start``; the counters of visible turns and messages count from there.
    Nothing before ``context_start`` comes back, pinned or not. ``held_turns`` are pinned or wait for a person;
    ``standing_runs`` are the turns that stay left out until the next change, as LeftOut has them, with ``made_room``
    where a reset cleared them for the turn at the context start. What the conversation does not decide for itself is
    ``UNSET`` or ``None``. ``pinned`` ones stand first in the list; ``branched_from`` says where it branched off:
    ``conversation_id``, ``turn``. ``scope`` are the documents that its questions are about. ``listed`` ones stand in
    the list beside the pages.
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


@dataclass(frozen=True, slots=True)
class ConversationHit:
    """A conversation that a search found: ``text`` was said in its turn ``turn``; None where its title was the hit."""

    conversation: Conversation
    turn: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """What a person thinks of answer ``version`` of a turn, and which answer would be right, if that was said.

    ``result`` is what came of it when the question was last asked again, as JSON (``answering/evaluation.py``).
    """

    rating: Literal["up", "down"]
    version: int
    rated_at: datetime
    right_answer: str | None = None
    result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A question with its answer and how the answer ended.

    ``search`` says how the documents were searched for it: ``query``, ``by`` (question, words or model),
    ``leans_on``, ``found``. ``iterations`` are the messages between the two: calls of tools and their results.
    ``waiting`` is an action that a person has to confirm first: ``call_id``, ``tool``, ``arguments``. ``notes`` are
    sentences about how the answer came about. ``version`` says which of its ``versions`` the answer is, from 1 on.
    Of an erased turn nothing is left but its place, and when it was erased. ``rating`` is that of one of the answers,
    which need not be this one. ``retry_after_seconds`` is what a failed
    endpoint asked for; it is soon out of date, so it is not stored.
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
    retry_after_seconds: float | None = None
    options: AnswerOptions = AS_SET


@dataclass(frozen=True, slots=True)
class Correction:
    """What an answer rests on and was changed since: an earlier turn, a summary, or source ``n`` of the answer.

    In a line of a summary, ``turn`` is the number of the turn whose answer cites the source.
    """

    what: Literal["source", "turn", "summary"]
    change: Literal["changed", "deleted", "excluded", "erased", "edited"]
    turn: int | None = None
    n: int | None = None
    document: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerVersion:
    """One of the answers that a turn's question got; ``chosen`` is the one that stands in the turn."""

    version: int
    status: TurnStatus
    answer: str
    model: str | None
    sources: tuple[Source, ...]
    notes: tuple[str, ...]
    finished_at: datetime | None
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """A conversation that goes off another one before its turn ``turn``."""

    conversation_id: int
    title: str
    turn: int


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A completed turn as the window needs it: its place in the conversation and its messages.

    ``waiting_call`` is the id of a tool call in it that waits for a person's word.
    """

    number: int
    messages: tuple[Message, ...]
    pinned: bool = False
    waiting_call: str | None = None


@dataclass(frozen=True, slots=True)
class RelatedTurn:
    """An earlier turn that is not in the window, found again by its words.

    ``certainty``, from 0 to 1, says how surely a question is about it; ``why`` is the reason for which it is left out.
    """

    number: int
    question: str
    answer: str
    sources: tuple[Source, ...]
    certainty: float = 1.0
    why: str = "turn_limit"

    def as_past(self) -> PastTurn:
        """Return its question and its answer."""
        said = {"role": "user", "content": self.question}, {"role": "assistant", "content": self.answer}
        return PastTurn(self.number, said)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What one request asks of a model; ``tools`` are schemas in the OpenAI format. ``call_tools`` False: answer.

    ``timeout_seconds`` is how long it may take in all, where that is less than the settings say.
    """

    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[dict[str, Any], ...] = ()
    call_tools: bool = True
    timeout_seconds: float | None = None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> ModelRequest:
        """Return the request that ``as_body`` kept."""
        return cls(
            messages=tuple(body["messages"]),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            tools=tuple(body.get("tools", ())),
            call_tools=body.get("tool_choice") != "none",
        )

    def as_body(self, model: str | None) -> dict[str, Any]:
        """Return the request as it is kept and can be sent again; what is not set is not there."""
        body: dict[str, Any] = {"model": model, "messages": list(self.messages)}
        if self.tools:
            body["tools"] = list(self.tools)
            body["tool_choice"] = "auto" if self.call_tools else "none"
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        return body


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A piece of what a model streams: text, or at the end the tools that it calls and the closing figures.

    ``thought``: it wrote down what it thought, which is no part of the answer.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    thought: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an answer.

    ``state``, ``start``, ``update`` (what ``start`` said has changed), ``step`` (a tool was called), ``token``, ``end``
    or ``error``.

    ``position`` is the number of characters of the answer shown once this event is read; only ``start`` and
    ``token`` carry one, and a reader who comes back names the last one it saw.
    """

    name: Literal["state", "start", "update", "step", "token", "end", "error"]
    data: dict[str, Any] = field(default_factory=dict)
    position: int | None = None


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return numbers that rise as runs of neighbours: [first, last]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
