"""What goes to a model for an answer, what comes back, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from rag_assistant.records.base import MAX_INT32, Message

# The name under which answers are given where no model is connected.
QUOTES = "quotes"
Strategy = Literal["window", "smart"]
# What an answer rests on; see Turn.support.
Support = Literal["cited", "uncited", "not_checked", "nothing_found", "not_sent", "not_searched"]


# In the place of the id of a document that is not here: no document gets as far.
NO_DOCUMENT = MAX_INT32


class Source(Struct, frozen=True):
    """A passage shown under an answer as number ``n``; ``cited`` when the answer refers to ``[n]``.

    ``doubts`` are the citations of it that it does not seem to carry, as JSON: ``nth`` of them, ``problem``,
    ``missing`` and ``carried_by``; ``offered`` are sentences that it carries and that cite nothing
    (``retrieval/claims.py``). ``cited_in`` is the number of the earlier turn whose answer cited it, for a passage that
    comes along for that alone. One from another conversation is of NO_DOCUMENT: ``turn`` of ``conversation_id`` said
    it, on ``date``.
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
    conversation_id: int | None = None
    turn: int | None = None
    date: str | None = None


class ModelRequest(Struct, frozen=True):
    """What one request asks of a model; ``tools`` are schemas in the OpenAI format. ``call_tools`` False: answer.

    ``fields`` stand in it as they are, a caller's own tools among them.
    ``timeout_seconds`` is how long it may take in all, where that is less than the settings say.
    """

    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[dict[str, Any], ...] = ()
    call_tools: bool = True
    fields: Mapping[str, Any] = {}
    timeout_seconds: float | None = None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> ModelRequest:
        """Return the request that ``as_body`` kept."""
        return cls(
            messages=tuple(body["messages"]),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            fields={name: body[name] for name in body.keys() - {"model", "messages", "max_tokens", "temperature"}},
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
        return body | dict(self.fields)


class Reading(Struct, frozen=True):
    """How much of a request an endpoint read: ``read`` of ``sent`` tokens, ``None`` where that is not known.

    With a ``limit`` it cut the request by itself; so many tokens it probably takes.
    """

    sent: int
    read: int | None
    limit: int | None = None


class ModelCounts(Struct, frozen=True):
    """How the model of an endpoint counts tokens, and the most that it takes, as its answers taught it.

    ``ratio`` is that of its counts to our estimates. ``context_limit`` counts as long as what is declared, by a setting
    or by the endpoint's list, is still ``declared_limit``. ``whole_counts`` is how many counts were certainly of
    everything that was sent, -1 where they leave out what was cached.
    """

    ratio: float | None = None
    context_limit: int | None = None
    declared_limit: int | None = None
    whole_counts: int = 0


class ModelReply(Struct, frozen=True):
    """What a model's answer ends with, beside its text: the tools that it calls, and the closing figures.

    ``thought``: it wrote down what it thought, which is no part of the answer.
    """

    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    thought: bool = False
    reading: Reading | None = None


class Event(Struct, frozen=True):
    """One event of an answer.

    ``state``, ``start``, ``update`` (what ``start`` said has changed), ``step`` (a tool was called), ``token``, ``end``
    or ``error``.

    ``position`` is the number of characters of the answer shown once this event is read; only ``start`` and
    ``token`` carry one, and a reader who comes back names the last one it saw.
    """

    name: Literal["state", "start", "update", "step", "token", "end", "error"]
    data: dict[str, Any] = field(default_factory=dict)
    position: int | None = None


class ErrorData(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What went wrong: its kind, and a sentence about it."""

    type: str
    message: str
    details: dict[str, Any] | None = None
    retry_after_seconds: float | None = None


class Tokens(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens of a request, by part; estimates. ``read`` is how many of them the endpoint counted, if it did."""

    system: int = 0
    tools: int = 0
    summary: int = 0
    history: int = 0
    passages: int = 0
    question: int = 0
    total: int = 0
    limit: int | None = None
    read: int | None = None


class EndpointCut(Struct, frozen=True, forbid_unknown_fields=True):
    """A request that the endpoint cut by itself: ``read`` of ``sent`` tokens. It probably takes ``limit``."""

    sent: int
    read: int
    limit: int


class MissingTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn that the question seems to be about, and that was not sent."""

    turn: int
    why: str = "turn_limit"
    score: float = 0


class PastPassage(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of another conversation that was sent as a passage."""

    conversation_id: int
    turn: int


class HistoryFigures(Struct, frozen=True, forbid_unknown_fields=True):
    """What the model saw of the earlier turns; of an imported or an old turn not everything is known."""

    max_history_turns: int | None = None
    strategy: Strategy = "window"
    turns_total: int = 0
    turns_kept: int = 0
    turns_dropped: int = 0
    messages_dropped: int = 0
    first_kept_turn: int | None = None
    reason: str | None = None
    notice: str | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    summary_sent: bool = False
    recalled_turns: list[int] = field(default_factory=list)
    missing: list[MissingTurn] = field(default_factory=list)
    past_turns: list[PastPassage] = field(default_factory=list)
    notes: list[int] = field(default_factory=list)
    iterations_dropped: int = 0
    endpoint: EndpointCut | None = None
    tokens: Tokens = Tokens()


class Coverage(Struct, frozen=True):
    """How much an answer rests on: ``read`` of so many sections of documents, rows of a table or items of a list."""

    read: int
    of: int
    unit: Literal["sections", "rows", "items"] = "sections"


class SearchData(Struct, frozen=True):
    """How the documents were searched; ``support`` says whether what was found answers the question, or only may.

    ``coverage`` is there where a question needs all of something.
    """

    found: int
    query: str | None = None
    by: Literal["question", "words", "model"] | None = None
    follow_up_context: str | None = None
    support: Literal["found", "near", "nothing_found"] | None = None
    coverage: Coverage | UnsetType = UNSET


class Usage(Struct, frozen=True, omit_defaults=True):
    """What an answer cost, as the provider counts; what it does not say is not there."""

    finish_reason: str | None = None
    requests: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None


class Doubt(Struct, frozen=True, forbid_unknown_fields=True):
    """A citation that its passage does not seem to carry."""

    nth: int
    problem: Literal["number", "name", "negation", "words"]
    missing: list[str]
    carried_by: int | None


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that was called, and what it gave."""

    n: int
    tool: str
    arguments: str
    result: str | None


def steps_of(iterations: Sequence[Message]) -> list[Step]:
    """Return the tool calls of a turn with their results, in their order, numbered from 1."""
    calls = [call["function"] for message in iterations for call in message.get("tool_calls") or ()]
    results = [message["content"] for message in iterations if message["role"] == "tool"]
    return [
        Step(n, call["name"], call["arguments"], result)
        for n, (call, result) in enumerate(zip_longest(calls, results[: len(calls)]), 1)
    ]
