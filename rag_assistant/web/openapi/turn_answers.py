"""Turns and errors as types of answers, which become schemas; tests compare them with what really comes."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from rag_assistant.records import TurnStatus

EXACT = with_config(ConfigDict(extra="forbid"))
Rating = Literal["up", "down"]
Strategy = Literal["window", "smart"]


@EXACT
class ErrorData(TypedDict):
    """What went wrong: its kind, and a sentence about it."""

    type: str
    message: str
    details: NotRequired[dict[str, Any]]
    retry_after_seconds: NotRequired[float]


@EXACT
class ErrorAnswer(TypedDict):
    """An error."""

    error: ErrorData


class Problem(TypedDict):
    """An error as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str


@EXACT
class OpenAIErrorData(TypedDict):
    """What went wrong, as OpenAI tells it."""

    message: str
    type: str
    param: str | None
    code: str
    details: NotRequired[dict[str, Any]]


@EXACT
class OpenAIErrorAnswer(TypedDict):
    """An error in OpenAI's shape."""

    error: OpenAIErrorData


@EXACT
class Tokens(TypedDict):
    """Tokens of a request, by part; estimates."""

    system: int
    tools: int
    summary: int
    history: int
    passages: int
    question: int
    total: int
    limit: int | None


@EXACT
class MissingTurn(TypedDict):
    """A turn that the question seems to be about, and that was not sent."""

    turn: int
    why: str
    score: float


@EXACT
class HistoryFigures(TypedDict):
    """What the model saw of the earlier turns."""

    max_history_turns: int | None
    strategy: Strategy
    turns_total: int
    turns_kept: int
    turns_dropped: int
    messages_dropped: int
    first_kept_turn: int | None
    reason: str | None
    notice: str | None
    left_out: dict[str, int]
    summary_sent: bool
    recalled_turns: list[int]
    missing: list[MissingTurn]
    iterations_dropped: int
    tokens: Tokens


@EXACT
class Doubt(TypedDict):
    """A citation that its passage does not seem to carry."""

    nth: int
    problem: Literal["number", "name", "negation", "words"]
    missing: list[str]
    carried_by: int | None


@EXACT
class PassageAnswer(TypedDict):
    """A passage of a document; its text stands there from start to end."""

    document_id: int
    document: str
    document_name: str
    page: int | None
    section: str | None
    start: int
    end: int
    text: str
    score: float


@EXACT
class SourceAnswer(PassageAnswer):
    """A passage that the model was given, under its number."""

    n: int
    cited: bool
    cited_in: int | None
    doubts: list[Doubt]
    offered: list[str]


@EXACT
class SearchData(TypedDict):
    """How the documents were searched."""

    query: str
    by: Literal["question", "words", "model"]
    leans_on: str | None
    found: int
    follow_up_context: str | None


@EXACT
class Step(TypedDict):
    """A tool that was called, and what it gave."""

    n: int
    tool: str
    arguments: str
    result: str | None


@EXACT
class RatingAnswer(TypedDict):
    """What a person thinks of an answer."""

    rating: Rating
    version: int
    right_answer: str | None
    rated_at: str


@EXACT
class CorrectionAnswer(TypedDict):
    """What an answer rests on and was changed since."""

    what: Literal["source", "turn", "summary"]
    change: Literal["changed", "deleted", "excluded", "erased", "edited"]
    sentence: str
    turn: NotRequired[int]
    n: NotRequired[int]
    document: NotRequired[str]


class TurnHead(TypedDict):
    """What stands in every view of a turn."""

    conversation_id: int
    turn_id: int
    turn: int
    status: TurnStatus
    history_trimmed: bool
    notice: str | None
    history: HistoryFigures | None
    model: str | None


class TurnStart(TurnHead):
    """What is known of an answer before its first text."""

    question: str
    search: SearchData | None
    sources: list[SourceAnswer]
    notes: list[str]
    pinned: bool
    excluded: bool
    purged: bool
    waiting: bool
    version: int
    versions: int
    rating: RatingAnswer | None
    created_at: str


@EXACT
class StartEvent(TurnStart):
    """What is known of an answer before its first text; trimmed and dropped repeat the two most wanted figures."""

    trimmed: bool
    dropped: int


@EXACT
class TurnAnswer(TurnStart):
    """A question with its answer."""

    answer: str
    steps: list[Step]
    support: Literal["cited", "uncited", "not_checked", "nothing_found", "not_sent", "not_searched"]
    doubts: int
    usage: dict[str, Any] | None
    finished_at: str | None
    images: NotRequired[int]
    erased_at: NotRequired[str]
    error: NotRequired[ErrorData]
    corrections: NotRequired[list[CorrectionAnswer]]


@EXACT
class VersionAnswer(TypedDict):
    """One of the answers to a question."""

    version: int
    chosen: bool
    status: TurnStatus
    answer: str
    model: str | None
    sources: list[SourceAnswer]
    notes: list[str]
    finished_at: str | None


@EXACT
class VersionsAnswer(TypedDict):
    """All answers to a question, the first one first."""

    versions: list[VersionAnswer]


class ReceiptAnswer(TurnHead):
    """What a model was sent for a turn, and what was left out; older receipts have less."""

    messages: list[dict[str, Any]]
    usage: dict[str, Any] | None
    support: str
    doubts: int


@EXACT
class TokenEvent(TypedDict):
    """Text to append to the answer, or how its end is drawn anew."""

    text: NotRequired[str]
    keep: NotRequired[int]
    html: NotRequired[str]


@EXACT
class StateEvent(TypedDict):
    """What is awaited."""

    state: str
    message: str
    conversation_id: int
    turn_id: int
    turn: int


@EXACT
class StepEvent(Step):
    """A tool that was called."""

    conversation_id: int
    turn_id: int
    turn: int
