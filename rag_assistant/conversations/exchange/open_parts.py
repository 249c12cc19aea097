"""The untyped parts of an archived conversation: what they must contain to be displayed.

They are checked against this, and stored unchanged.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from rag_assistant.records.archive import Number
from rag_assistant.records.questions import AnswerOptions

# The total usage of an answer's requests.
Sum = Annotated[int, Meta(ge=0)]


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    function: _Function
    id: str | None = None


class _Said(Struct):
    role: Literal["assistant", "tool"]
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    # Pictures attached to questions.
    images: Annotated[list[str], Meta(max_length=0)] = field(default_factory=list)


class _Missing(Struct):
    turn: Number
    why: str


class _Tokens(Struct):
    passages: Number
    total: Number = 0


class _History(Struct):
    turns_kept: Number
    turns_dropped: Number
    messages_dropped: Number
    tokens: _Tokens
    reason: str | None
    max_history_turns: Number | None = None
    left_out: dict[str, Number] = field(default_factory=dict)
    recalled_turns: list[Number] = field(default_factory=list)
    missing: list[_Missing] = field(default_factory=list)
    iterations_dropped: Number = 0


class _Doubt(Struct):
    nth: Number
    problem: Literal["number", "name", "negation", "words"]
    missing: list[str]
    carried_by: Number | None


class _Source(Struct):
    n: Number
    start: Number
    end: Number
    page: Number | None = None
    cited_in: Number | None = None
    doubts: list[_Doubt] = field(default_factory=list)


class _Coverage(Struct):
    read: Number
    of: Number


class _Search(Struct):
    found: Number
    query: str | None = None
    by: str | None = None
    follow_up_context: str | None = None
    support: str | None = None
    coverage: _Coverage | None = None


class _Usage(Struct):
    prompt_tokens: Sum = 0
    completion_tokens: Sum = 0
    cached_tokens: Sum = 0
    requests: Sum = 1
    finish_reason: str | None = None


class _Answer(Struct):
    messages: list[_Said] = field(default_factory=list)
    sources: list[_Source] = field(default_factory=list)
    history: _History | None = None
    search: _Search | None = None
    usage: _Usage | None = None


class _Request(Struct):
    max_history_turns: Number | None = None
    document_ids: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    on_overflow: str | None = None
    options: AnswerOptions | None = None


class _Turn(Struct):
    answer: _Answer
    request: _Request = field(default_factory=_Request)
    others: dict[Any, _Answer] = field(default_factory=dict)


class OpenParts(Struct):
    """Those of a conversation. Anything not named here is unchecked."""

    turns: list[_Turn]
