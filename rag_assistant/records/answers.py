"""What is sent to a model for an answer, what comes back, and what supports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from rag_assistant.records.base import MAX_INT32, Message, Number
from rag_assistant.records.documents import DateOrigin

# The model name of answers given while no model is connected.
QUOTES = "quotes"
Strategy = Literal["window", "smart"]
# What supports an answer; see Turn.support.
Support = Literal["cited", "uncited", "not_checked", "nothing_found", "not_sent", "not_searched"]


# Instead of the id of a document that doesn't exist here: no document ever gets this id.
NO_DOCUMENT = MAX_INT32


class Source(Struct, frozen=True):
    """A passage shown under an answer as number ``n``; ``cited`` when the answer refers to ``[n]``.

    ``doubts`` are citations that it doesn't seem to support, as JSON: the ``nth`` citation, ``problem``, ``missing``
    and ``carried_by``; ``offered`` are sentences without a citation that it supports (``retrieval/claims.py``).
    ``cited_in`` is the number of the earlier turn whose citation is the only reason why it was sent. ``date`` is its
    document's when the answer was given, from ``date_from``. A passage from another conversation has NO_DOCUMENT, with
    ``turn``, ``conversation_id`` and ``date``. With ``page_image`` a picture of its page was sent, too.
    """

    n: Number
    document_id: int
    document: str
    page: Number | None
    start: Number
    end: Number
    text: str
    score: float
    section: str | None = None
    cited: bool = False
    doubts: Sequence[dict[str, Any]] = ()
    offered: Sequence[str] = ()
    cited_in: Number | None = None
    conversation_id: int | None = None
    turn: int | None = None
    date: str | None = None
    date_from: DateOrigin | None = None
    page_image: bool = False

    @property
    def own_date(self) -> str | None:
        """Its document's date, ``None`` if that is only the day on which it was added."""
        return None if self.date_from in (None, "added") else self.date


class ModelRequest(Struct, frozen=True):
    """What one request asks of a model; ``tools`` are schemas in the OpenAI format.

    With ``call_tools`` False the model must answer. ``fields`` are sent unchanged, such as a caller's own tools.
    ``timeout_seconds`` is the total time, if shorter than the settings allow.
    """

    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[dict[str, Any], ...] = ()
    call_tools: bool = True
    fields: Mapping[str, Any] = {}
    timeout_seconds: float | None = None

    def as_body(self, model: str | None) -> dict[str, Any]:
        """Return the request as it is sent and stored; unset fields are left out."""
        body: dict[str, Any] = {"model": model, "messages": list(self.messages)}
        if self.tools:
            body["tools"] = list(self.tools)
            body["tool_choice"] = "auto" if self.call_tools else "none"
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        return body | dict(self.fields)


class Reading(Struct, frozen=True):
    """How much of a request an endpoint read: ``read`` of ``sent`` tokens, ``None`` if unknown.

    With a ``limit`` it cut the request by itself, probably to that many tokens.
    """

    sent: int
    read: int | None
    limit: int | None = None


class ModelCounts(Struct, frozen=True):
    """How an endpoint's model counts tokens, and its limit, learned from its answers.

    ``ratio`` is its counts divided by our estimates. ``context_limit`` applies as long as the limit declared by a
    setting or the endpoint's list is still ``declared_limit``. ``whole_counts`` is how many counts certainly included
    everything sent, -1 if they exclude cached tokens.
    """

    ratio: float | None = None
    context_limit: int | None = None
    declared_limit: int | None = None
    whole_counts: int = 0


# What a provider wants back while tools run, in a message or its calls.
THOUGHTS = ("reasoning", "reasoning_content", "reasoning_details", "thought_signature", "extra_content")


class ModelReply(Struct, frozen=True):
    """What follows an answer's text: the tool calls and the final figures.

    ``thought``: the model wrote reasoning, which isn't part of the answer; ``thoughts`` is what its provider wants back
    while tools run, of THOUGHTS.
    """

    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    thought: bool = False
    thoughts: dict[str, Any] = field(default_factory=dict)
    reading: Reading | None = None


class Event(Struct, frozen=True):
    """One event of an answer.

    ``state``, ``start``, ``update`` (to what ``start`` said), ``step`` (a tool was called), ``token``, ``end`` or
    ``error``. ``position`` is the length of the answer in characters after this event; only ``start`` and ``token``
    have one, and a client that reconnects names the last one it saw.
    """

    name: Literal["state", "start", "update", "step", "token", "end", "error"]
    data: dict[str, Any] = field(default_factory=dict)
    position: int | None = None


class ErrorData(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    type: str
    message: str
    details: dict[str, Any] | None = None
    retry_after_seconds: float | None = None


class Tokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Estimated tokens of a request, by part. ``read`` is the endpoint's own count, if there is one."""

    system: Number = 0
    tools: Number = 0
    summary: Number = 0
    history: Number = 0
    passages: Number
    question: Number = 0
    total: Number = 0
    limit: int | None = None
    read: int | None = None


class EndpointCut(Struct, frozen=True, forbid_unknown_fields=True):
    """A request that the endpoint cut: ``read`` of ``sent`` tokens. Its context is probably ``limit``."""

    sent: int
    read: int
    limit: int


class MissingTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn that the question seems to be about, but that wasn't sent."""

    turn: Number
    why: str = "turn_limit"
    score: float = 0


class PastPassage(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of another conversation that was sent as a passage."""

    conversation_id: int
    turn: int


class HistoryFigures(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model saw of earlier turns; for old turns, only what every page shows is known."""

    max_history_turns: Number | None = None
    strategy: Strategy = "window"
    turns_total: Number = 0
    turns_kept: Number
    turns_dropped: Number
    messages_dropped: Number
    first_kept_turn: Number | None = None
    reason: str | None
    notice: str | None = None
    left_out: dict[str, Number] = field(default_factory=dict)
    summary_sent: bool = False
    recalled_turns: list[Number] = field(default_factory=list)
    missing: list[MissingTurn] = field(default_factory=list)
    past_turns: list[PastPassage] = field(default_factory=list)
    notes: list[Number] = field(default_factory=list)
    iterations_dropped: Number = 0
    endpoint: EndpointCut | None = None
    tokens: Tokens


class Coverage(Struct, frozen=True):
    """How much of the whole an answer covers: ``read`` sections of documents, table rows or list items."""

    read: Number
    of: Number
    unit: Literal["sections", "rows", "items"] = "sections"


class Disagreement(Struct, frozen=True):
    """Values for one thing, each with the passages of documents that state it; ``newer`` is that of the newest.

    With ``time`` it is the newest of those dated no later. ``about`` is the sentence of the first value, or its part.
    """

    values: tuple[str, ...]
    passages: tuple[tuple[Number, ...], ...]
    newer: str | None = None
    time: str | None = None
    about: str = ""

    def __str__(self) -> str:
        when = f"newest dated up to {self.time}" if self.time else "newer"
        return f"{self._stated}; {when}: {self.newer}" if self.newer else self._stated

    @property
    def sentence(self) -> str:
        which = f"newest of these dated up to {self.time}" if self.time else "newer document"
        newest = f" When this was answered, the {which} said {self.newer}." if self.newer else ""
        return f"Your documents disagree: {self._stated}.{newest}"

    @property
    def _stated(self) -> str:
        values = ", ".join(f"{value} {list(ns)}" for value, ns in zip(self.values, self.passages, strict=True))
        return f"{values} (“{self.about}”)" if self.about else values


class SearchData(Struct, frozen=True):
    """How the documents were searched; ``support`` says whether the hits answer the question, or only may.

    ``coverage`` is set for questions that need all of something, ``disagreements`` if documents contradict each other.
    """

    found: Number
    query: str | None = None
    by: Literal["question", "words", "model"] | None = None
    follow_up_context: str | None = None
    support: Literal["found", "near", "nothing_found"] | None = None
    coverage: Coverage | UnsetType = UNSET
    disagreements: tuple[Disagreement, ...] | UnsetType = UNSET


# Of all requests for an answer.
Sum = Annotated[int, Meta(ge=0)]


class Usage(Struct, frozen=True, omit_defaults=True):
    """The provider's token counts; figures it doesn't give are left out."""

    finish_reason: str | None = None
    requests: Sum | UnsetType = UNSET
    prompt_tokens: Sum | UnsetType = UNSET
    completion_tokens: Sum | UnsetType = UNSET
    total_tokens: Sum | UnsetType = UNSET
    cached_tokens: Sum | UnsetType = UNSET


Problem = Literal["number", "name", "negation", "words"]


class Doubt(Struct, frozen=True, forbid_unknown_fields=True):
    """A citation that its passage doesn't seem to support.

    ``nth`` counts the citations of that passage in the answer, from 1. ``missing`` are the missing numbers or names.
    ``carried_by`` is the number of another passage that has everything.
    """

    nth: Number
    problem: Problem
    missing: tuple[str, ...]
    carried_by: Number | None


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call and its result."""

    n: int
    tool: str
    arguments: str
    result: str | None


def steps_of(iterations: Sequence[Message]) -> list[Step]:
    """Return the tool calls of a turn with their results, in order, numbered from 1."""
    calls = [call["function"] for message in iterations for call in message.get("tool_calls") or ()]
    results = [message["content"] for message in iterations if message["role"] == "tool"]
    return [
        Step(n, call["name"], call["arguments"], result)
        for n, (call, result) in enumerate(zip_longest(calls, results[: len(calls)]), 1)
    ]


class Correction(Struct, frozen=True):
    """A later change to something an answer rests on: an earlier turn, a summary, or source ``n``.

    For a source in a summary line, ``turn`` is the number of the turn whose answer cites it.
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
            "changed": f"“{self.document}” has changed since, in the passage of {source}.",
            "deleted": f"“{self.document}” ({source}) has since been deleted.",
            "excluded": f"Turn {self.turn} was sent with this answer and has since been excluded.",
            "erased": f"Turn {self.turn} was sent with this answer and has since been erased.",
            "edited": "The summary sent with this answer has since been edited.",
        }[self.change]
