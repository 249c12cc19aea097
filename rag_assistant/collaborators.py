"""Whom the assistant asks to keep, to find and to answer: known by what they do, not by who they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from rag_assistant.records import (
    EVERYTHING,
    Conversation,
    Document,
    Message,
    ModelReply,
    ModelRequest,
    Passage,
    PastTurn,
    Question,
    RecalledTurn,
    Scope,
    Turn,
    TurnStatus,
)


class Conversations(Protocol):
    """Keeps conversations."""

    def get(self, conversation_id: int) -> Conversation: ...


class Turns(Protocol):
    """Keeps turns."""

    def accept(self, question: Question, title: str) -> tuple[Turn, bool]: ...
    def known(self, question: Question) -> Turn | None: ...
    def run_again(self, turn_id: int) -> Turn: ...
    def answer_anew(self, turn_id: int) -> Turn: ...
    def get(self, turn_id: int) -> Turn: ...
    def page(self, conversation_id: int, limit: int, before: int | None = None) -> list[Turn]: ...
    def keep_receipt(self, turn: Turn, receipt: dict[str, Any]) -> None: ...
    def keep_iteration(self, turn_id: int, said: Sequence[Message]) -> None: ...
    def finish(
        self,
        turn: Turn,
        status: TurnStatus,
        answer: str,
        *,
        usage: dict[str, Any] | None = None,
        error: tuple[str, str] | None = None,
    ) -> Turn: ...
    def interrupt_unfinished(self) -> list[Turn]: ...


class History(Protocol):
    """Keeps what the model sees of each conversation, and reads it."""

    def past(self, conversation: Conversation, before: int, newest: int | None) -> list[PastTurn]: ...
    def between(self, conversation: Conversation, first: int, last: int) -> list[PastTurn]: ...
    def recall(
        self, conversation: Conversation, words: Sequence[str], before: int, seen: Collection[int], limit: int
    ) -> list[RecalledTurn]: ...
    def begin_afresh(self, conversation_id: int, kind: Any, at_turn: int | None = None) -> Conversation: ...
    def keep_summary(
        self, conversation: Conversation, text: str, covered: Sequence[int], written_by: str, running: int | None
    ) -> Conversation: ...
    def decide(self, conversation_id: int, until_turn: int) -> None: ...


class Answers(Protocol):
    """Commits the text of running answers."""

    def append(self, turn_id: int, position: int, text: str) -> None: ...


class Documents(Protocol):
    """Knows which documents there are."""

    def missing(self, document_ids: Sequence[int]) -> list[int]: ...
    def tags(self) -> dict[str, int]: ...
    def find(self, name_contains: str, scope: Scope, limit: int) -> tuple[list[Document], int]: ...


class Retriever(Protocol):
    """Finds passages."""

    def follow_up(self, question: str, exchanges: Sequence[tuple[str, str]], scope: Scope = EVERYTHING) -> Any: ...
    def search(
        self, query: Any, limit: int, scope: Scope = EVERYTHING, budget_tokens: int | None = None
    ) -> list[Passage]: ...
    def sentences(self, question: str, passages: Sequence[str], limit: int) -> list[str]: ...


class ToolRunner(Protocol):
    """Runs what the model calls."""

    @property
    def schemas(self) -> tuple[dict[str, Any], ...]: ...
    def run_all(self, calls: Sequence[dict[str, Any]], scope: Scope) -> list[Any]: ...
    def carry_out(self, waiting: dict[str, Any]) -> str: ...


class Call(Protocol):
    """A call to a model that can be ended from outside."""

    @property
    def stopped(self) -> bool: ...
    def stop(self) -> None: ...
    def start_over(self) -> None: ...


class Endpoint(Protocol):
    """Where a model answers."""

    @property
    def model(self) -> str | None: ...
    @property
    def context_tokens(self) -> int | None: ...
    @property
    def built_in(self) -> bool: ...
    @property
    def takes_tools(self) -> bool: ...


class Models(Protocol):
    """Answers, and learns from each answer how the model counts."""

    def new_call(self) -> Call: ...
    def endpoint(self, call: Any) -> Endpoint: ...
    def stream(
        self, endpoint: Any, request: ModelRequest, call: Any, on_wait: Callable[[str], None]
    ) -> Iterator[ModelReply]: ...
    def ratio(self, endpoint: Any) -> float: ...
    def learn(self, endpoint: Any, estimated_tokens: int, counted_tokens: int) -> None: ...
    def learn_refusal(
        self, endpoint: Any, estimated_tokens: int, limit: int | None, counted_tokens: int | None
    ) -> None: ...
    def known_endpoint(self) -> Endpoint: ...
