"""The parts of an archived conversation that its record leaves open: what must stand in them for it to be shown.

They are compared with this, and kept as they came.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from rag_assistant.records.archive import Number
from rag_assistant.records.questions import AnswerOptions


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    function: _Function
    id: str | None = None


class _Said(Struct):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _Missing(Struct):
    turn: int
    why: str


class _Tokens(Struct):
    passages: int


class _History(Struct):
    turns_kept: int
    turns_dropped: int
    tokens: _Tokens
    reason: str | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    recalled_turns: list[int] = field(default_factory=list)
    missing: list[_Missing] = field(default_factory=list)
    iterations_dropped: int = 0


class _Doubt(Struct):
    nth: int
    problem: Literal["number", "name", "negation", "words"]
    missing: list[str]
    carried_by: int | None


class _Source(Struct):
    n: Number
    start: Number
    end: Number
    page: Number | None = None
    cited_in: Number | None = None
    doubts: list[_Doubt] = field(default_factory=list)


class _Search(Struct):
    found: int


class _Answer(Struct):
    messages: list[_Said] = field(default_factory=list)
    sources: list[_Source] = field(default_factory=list)
    history: _History | None = None
    search: _Search | None = None


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
    """Of a conversation. What is not named here may be anything."""

    turns: list[_Turn]
