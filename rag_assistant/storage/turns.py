"""Turns: accepted, answered, ended. A turn is a row, not a connection: what is accepted is there for ever.

The statements that every question needs are built once, here: building one costs more than running it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.errors import (
    ConversationBusy,
    ConversationNotFound,
    IdempotencyKeyReused,
    TurnNotRetryable,
)
from rag_assistant.records import LARGEST_NUMBER, Message, PastTurn, Question, Turn, TurnStatus
from rag_assistant.storage.conversations import insert_conversation, load_conversation
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import answer_parts, conversations, messages, now, receipts, turns
from rag_assistant.storage.turn_rows import (
    as_turns,
    committed_text,
    hash_of,
    load_turn,
    request_of,
)

CRASHED = ("AnswerInterrupted", "The server ended while it was answering. What was written so far is kept.")
CRASHED_EARLY = ("AnswerInterrupted", "The server ended before the first word. Your question was kept; try again.")

_NEXT_NUMBER = (
    update(conversations)
    .where(conversations.c.id == bindparam("conversation"), conversations.c.deleted_at.is_(None))
    .values(turns=conversations.c.turns + 1, updated_at=bindparam("moment"))
    .returning(conversations.c.turns)
)
_INSERT_TURN = insert(turns).returning(turns.c.id)
_INSERT_MESSAGE = insert(messages)
_KEEP_FIGURES = (
    update(turns)
    .where(turns.c.id == bindparam("turn"))
    .values(history=bindparam("new_history"), sources=bindparam("new_sources"))
)
_INSERT_RECEIPT = insert(receipts)
_END = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), turns.c.status == "running")
    .values(
        status=bindparam("new_status"),
        visible=bindparam("new_visible"),
        usage=bindparam("new_usage"),
        model=bindparam("new_model"),
        sources=bindparam("new_sources"),
        error_type=bindparam("new_error_type"),
        error_message=bindparam("new_error_message"),
        finished_at=bindparam("moment"),
    )
)
_DROP_PARTS = delete(answer_parts).where(answer_parts.c.turn_id == bindparam("turn"))
_COUNT = (
    update(conversations)
    .where(conversations.c.id == bindparam("conversation"))
    .values(
        visible_turns=conversations.c.visible_turns + bindparam("more_turns"),
        visible_messages=conversations.c.visible_messages + bindparam("more_messages"),
        updated_at=bindparam("moment"),
    )
)


def _window_query(limited: bool) -> Select[Any]:
    newest = (
        select(turns.c.id, turns.c.number)
        .where(turns.c.conversation_id == bindparam("conversation"))
        .where(turns.c.visible, turns.c.number < bindparam("before"))
        .order_by(turns.c.number.desc())
    )
    chosen = (newest.limit(bindparam("limit")) if limited else newest).subquery()
    return (
        select(chosen.c.number, messages.c.role, messages.c.content, messages.c.extra)
        .join_from(chosen, messages, messages.c.turn_id == chosen.c.id)
        .order_by(chosen.c.number, messages.c.position)
    )


_WINDOW = _window_query(limited=True)
_WHOLE_WINDOW = _window_query(limited=False)


class TurnStore:
    """Keeps turns with their messages and receipts. ``owner`` names this installation, so that it finds its own."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    def accept(self, question: Question, title: str) -> tuple[Turn, bool]:
        """Commit a question as a running turn, and return it and whether it is new.

        Without a conversation, one is made with ``title``. A known Idempotency-Key gives the turn it gave before.
        Raises ConversationNotFound, ConversationBusy, IdempotencyKeyReused.
        """
        try:
            with self._database.write() as connection:
                known = _known(connection, question)
                return (known, False) if known is not None else (self._insert(connection, question, title), True)
        except IntegrityError:
            # Another turn of the conversation runs, or the same request was accepted a moment ago.
            with self._database.read() as connection:
                known = _known(connection, question)
            if known is None and question.conversation_id is not None:
                raise ConversationBusy(question.conversation_id) from None
            if known is None:
                raise
            return known, False

    def _insert(self, connection: Connection, question: Question, title: str) -> Turn:
        moment = now()
        conversation_id = question.conversation_id
        if conversation_id is None:
            conversation_id = insert_conversation(connection, title)
        number = connection.execute(_NEXT_NUMBER, {"conversation": conversation_id, "moment": moment}).scalar()
        if number is None:
            raise ConversationNotFound(conversation_id)
        turn_id = connection.execute(
            _INSERT_TURN,
            {
                "conversation_id": conversation_id,
                "number": number,
                "status": "running",
                "visible": False,
                "owner": self._owner,
                "request": request_of(question),
                "idempotency_key": question.idempotency_key,
                "request_hash": hash_of(question) if question.idempotency_key else None,
                "created_at": moment,
            },
        ).scalar_one()
        connection.execute(_INSERT_MESSAGE, _message(turn_id, 0, "user", question.text))
        return Turn(
            id=turn_id,
            conversation_id=conversation_id,
            number=number,
            status="running",
            question=question.text,
            answer="",
            created_at=moment,
            max_history_turns=question.max_history_turns,
            document_ids=question.document_ids,
        )

    def run_again(self, turn_id: int) -> Turn:
        """Make a failed turn a running one again. It must be the conversation's last; raises TurnNotRetryable."""
        with self._database.write() as connection:
            turn = load_turn(connection, turn_id)
            conversation = load_conversation(connection, turn.conversation_id, lock=True)
            if turn.status != "failed":
                raise TurnNotRetryable(
                    f"Turn {turn_id} is {turn.status}; only a failed one can be retried. Ask the question again."
                )
            if conversation["turns"] != turn.number:
                raise TurnNotRetryable(
                    f"Turn {turn_id} is not the last of its conversation any more. Ask the question again."
                )
            fresh = dict.fromkeys(("error_type", "error_message", "finished_at", "history", "sources"))
            connection.execute(
                update(turns).where(turns.c.id == turn_id).values(fresh | {"status": "running", "owner": self._owner})
            )
            connection.execute(delete(receipts).where(receipts.c.turn_id == turn_id))
            return load_turn(connection, turn_id)

    def window(self, turn: Turn, max_turns: int | None) -> list[PastTurn]:
        """Return the newest ``max_turns`` turns before ``turn`` that a model may see, oldest first.

        Reads those turns and no others; ``None`` reads them all.
        """
        if max_turns == 0:
            return []
        place = {"conversation": turn.conversation_id, "before": turn.number}
        query, limit = (
            (_WHOLE_WINDOW, {}) if max_turns is None else (_WINDOW, {"limit": min(max_turns, LARGEST_NUMBER)})
        )
        with self._database.read() as connection:
            rows = connection.execute(query, place | limit).all()
        past: dict[int, list[Message]] = {}
        for number, role, content, extra in rows:
            past.setdefault(number, []).append({"role": role, "content": content} | (extra or {}))
        return [PastTurn(number, tuple(said)) for number, said in past.items()]

    def keep_receipt(self, turn: Turn, receipt: dict[str, Any]) -> None:
        """Keep what is about to be sent to the model, before it is sent; ``turn`` brings its figures and sources."""
        with self._database.write() as connection:
            kept = {
                "turn": turn.id,
                "new_history": turn.history,
                "new_sources": [source.as_dict() for source in turn.sources],
            }
            connection.execute(_KEEP_FIGURES, kept)
            connection.execute(_INSERT_RECEIPT, {"turn_id": turn.id, "body": receipt})

    def receipt(self, turn_id: int) -> dict[str, Any] | None:
        """Return a turn's receipt, ``None`` while there is none. Raises TurnNotFound, ConversationNotFound."""
        with self._database.read() as connection:
            load_conversation(connection, load_turn(connection, turn_id).conversation_id)
            body: dict[str, Any] | None = connection.execute(
                select(receipts.c.body).where(receipts.c.turn_id == turn_id)
            ).scalar()
            return body

    def finish(
        self,
        turn: Turn,
        status: TurnStatus,
        answer: str,
        *,
        usage: dict[str, Any] | None = None,
        error: tuple[str, str] | None = None,
    ) -> Turn:
        """End a running turn with its whole answer, and return it; one that has ended already stays as it is.

        ``turn`` brings its model and its sources. An answer with text makes the turn visible to the model; a turn
        without text never is.
        """
        with self._database.write() as connection:
            return _finish(connection, turn, status, answer, usage, error)

    def interrupt_unfinished(self) -> list[Turn]:
        """End the turns of this owner that a crash left running, with the text that was committed, and return them."""
        with self._database.write() as connection:
            left = connection.execute(
                select(turns.c.id).where(turns.c.status == "running", turns.c.owner == self._owner)
            ).scalars()
            return [_end_unfinished(connection, turn_id) for turn_id in list(left)]

    def get(self, turn_id: int) -> Turn:
        """Return one turn; the answer of a running one is what is committed so far.

        Raises TurnNotFound, or ConversationNotFound if its conversation was deleted.
        """
        with self._database.read() as connection:
            turn = load_turn(connection, turn_id)
            load_conversation(connection, turn.conversation_id)
            return turn

    def page(self, conversation_id: int, limit: int, before: int | None = None) -> list[Turn]:
        """Return up to ``limit`` turns with a number below ``before``, oldest first. Raises ConversationNotFound."""
        query = select(turns).where(turns.c.conversation_id == conversation_id)
        if before is not None:
            query = query.where(turns.c.number < before)
        with self._database.read() as connection:
            load_conversation(connection, conversation_id)
            rows = connection.execute(query.order_by(turns.c.number.desc()).limit(limit)).mappings().all()
            return as_turns(connection, reversed(rows))

    def horizon(self, conversation_id: int, max_turns: int | None) -> int | None:
        """Return the number of the first turn that the next question's model would see, ``None`` if it sees none."""
        visible = select(turns.c.number).where(turns.c.conversation_id == conversation_id, turns.c.visible)
        query = visible.order_by(turns.c.number).limit(1)
        if max_turns is not None:
            query = visible.order_by(turns.c.number.desc()).limit(min(max_turns, LARGEST_NUMBER))
        with self._database.read() as connection:
            numbers = connection.execute(query).scalars().all()
            return numbers[-1] if numbers else None


def _known(connection: Connection, question: Question) -> Turn | None:
    """Return the turn that the question's Idempotency-Key gave before. Raises IdempotencyKeyReused."""
    if question.idempotency_key is None:
        return None
    row = connection.execute(
        select(turns.c.id, turns.c.request_hash).where(turns.c.idempotency_key == question.idempotency_key)
    ).first()
    if row is None:
        return None
    if row.request_hash != hash_of(question):
        raise IdempotencyKeyReused(question.idempotency_key)
    return load_turn(connection, row.id)


def _end_unfinished(connection: Connection, turn_id: int) -> Turn:
    text = committed_text(connection, turn_id)
    status: TurnStatus = "interrupted" if text.strip() else "failed"
    error = CRASHED if text.strip() else CRASHED_EARLY
    return _finish(connection, load_turn(connection, turn_id), status, text, None, error)


def _finish(
    connection: Connection,
    turn: Turn,
    status: TurnStatus,
    answer: str,
    usage: dict[str, Any] | None,
    error: tuple[str, str] | None,
) -> Turn:
    moment = now()
    visible = bool(answer.strip())
    error_type, error_message = error or (None, None)
    ended = connection.execute(
        _END,
        {
            "turn": turn.id,
            "new_status": status,
            "new_visible": visible,
            "new_usage": usage,
            "new_model": turn.model,
            "new_sources": [source.as_dict() for source in turn.sources],
            "new_error_type": error_type,
            "new_error_message": error_message,
            "moment": moment,
        },
    )
    if not ended.rowcount:
        return load_turn(connection, turn.id)
    connection.execute(_DROP_PARTS, {"turn": turn.id})
    if answer:
        connection.execute(_INSERT_MESSAGE, _message(turn.id, 1, "assistant", answer))
    more = {"more_turns": int(visible), "more_messages": 2 * int(visible)}
    connection.execute(_COUNT, {"conversation": turn.conversation_id, "moment": moment} | more)
    return replace(
        turn,
        status=status,
        answer=answer,
        usage=usage,
        error_type=error_type,
        error_message=error_message,
        finished_at=moment,
    )


def _message(turn_id: int, position: int, role: str, content: str) -> dict[str, Any]:
    return {"turn_id": turn_id, "position": position, "role": role, "content": content, "extra": None}
