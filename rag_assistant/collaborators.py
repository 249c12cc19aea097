"""Whom the assistant asks to keep, to find and to answer: known by what they do, not by who they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from rag_assistant.records import (
    Conversation,
    Message,
    ModelReply,
    Passage,
    PastTurn,
    Question,
    Turn,
    TurnStatus,
)


class Conversations(Protocol):
    """Keeps conversations."""

    def get(self, conversation_id: int) -> Conversation: ...


class Turns(Protocol):
    """Keeps turns."""

    def accept(self, question: Question, title: str) -> tuple[Turn, bool]: ...
    def run_again(self, turn_id: int) -> Turn: ...
    def get(self, turn_id: int) -> Turn: ...
    def window(self, turn: Turn, max_turns: int | None) -> list[PastTurn]: ...
    def keep_receipt(self, turn: Turn, receipt: dict[str, Any]) -> None: ...
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


class Answers(Protocol):
    """Commits the text of running answers."""

    def append(self, turn_id: int, position: int, text: str) -> None: ...


class Documents(Protocol):
    """Knows which documents there are."""

    def missing(self, document_ids: Sequence[int]) -> list[int]: ...


class Retriever(Protocol):
    """Finds passages."""

    def search(self, query: str, limit: int, document_ids: Sequence[int] = ()) -> list[Passage]: ...
    def sentences(self, question: str, passages: Sequence[str], limit: int) -> list[str]: ...


class Call(Protocol):
    """A call to a model that can be ended from outside."""

    @property
    def stopped(self) -> bool: ...
    def stop(self) -> None: ...


class Endpoint(Protocol):
    """Where a model answers."""

    @property
    def model(self) -> str | None: ...
    @property
    def context_tokens(self) -> int | None: ...
    @property
    def built_in(self) -> bool: ...


class Models(Protocol):
    """Answers."""

    def new_call(self) -> Call: ...
    def endpoint(self, call: Any) -> Endpoint: ...
    def stream(
        self,
        endpoint: Any,
        messages: Sequence[Message],
        call: Any,
        on_wait: Callable[[str], None],
        max_tokens: int | None,
        temperature: float | None,
    ) -> Iterator[ModelReply]: ...
