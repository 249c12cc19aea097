"""Answers of which nothing is kept: they go the way of every other, and end with the last one who follows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rag_assistant.answering.receipt import usage_of
from rag_assistant.answering.writer import AnswerWriter
from rag_assistant.conversations.prompts import mark_cited, note_citations
from rag_assistant.records import Event, Turn, Unset
from rag_assistant.records.errors import ModelError, cause_alone

if TYPE_CHECKING:
    from rag_assistant.answering.dependencies import Dependencies
    from rag_assistant.answering.request import BuiltRequest
    from rag_assistant.answering.stream import LiveTurn
    from rag_assistant.conversations.viewed_history import SentHistory
    from rag_assistant.records import Conversation, Message, Question, TurnStatus

NOT_FINISHED = "Something went wrong on the server; see its log for details. Try again."


class UnkeptAnswers(AnswerWriter):
    """Ends answers as ever, and keeps nothing of them."""

    def write(self, turn: Turn, live: LiveTurn, text: str) -> None:  # noqa: ARG002
        """Show text."""
        live.add(text)

    def flush(self, live: LiveTurn) -> None:
        """Leave text as it is shown."""

    def keep_receipt(self, turn: Turn, built: BuiltRequest, sent: Sequence[dict[str, Any]]) -> None:
        """Keep no receipt."""

    def keep_iteration(self, turn: Turn, messages: Sequence[Message]) -> None:
        """Keep no iteration."""

    def keep(self, turn: Turn, live: LiveTurn, status: TurnStatus, error: tuple[str, str] | None = None) -> Turn:
        """Return a turn as it ended."""
        text = live.text()
        error_type, message = error or (None, None)
        return replace(
            turn,
            status=status,
            answer=text,
            sources=mark_cited(turn, text),
            notes=note_citations(turn, text),
            usage=usage_of(live.call.replies),
            error_type=error_type,
            error_message=message and cause_alone(message),
            finished_at=datetime.now(UTC),
        )

    def last_resort(self, turn: Turn, live: LiveTurn) -> bool:  # noqa: ARG002
        """Tell who follows that it is over: nothing of it was to be kept."""
        live.finish(Event("error", {"status": "failed", "error": ModelError(NOT_FINISHED).as_dict()}))
        return True


def without_store(deps: Dependencies, sent: SentHistory) -> Dependencies:
    """Return what an answer needs where the turns before it came along with it."""
    overflow, tools = replace(deps.overflow, history=sent), deps.tools.without_asking()
    return replace(deps, history=sent, overflow=overflow, tools=tools, writer=deps.unkept)


def unkept_turn(turn_id: int, question: Question, conversation: Conversation) -> Turn:
    """Return the turn that a question becomes in a conversation if it is not stored."""
    return Turn(
        id=turn_id,
        conversation_id=conversation.id,
        number=conversation.turns + 1,
        status="running",
        question=question.text,
        answer="",
        created_at=datetime.now(UTC),
        max_history_turns=question.max_history_turns,
        scope=conversation.scope if isinstance(question.scope, Unset) else question.scope,
        on_overflow=question.on_overflow,
        options=question.options,
        images=question.images,
    )
