"""Turns: accepted, answered, ended, shown. A turn is a row, not a connection: what is accepted is there for ever."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from rag_assistant.errors import ConversationBusy, IdempotencyKeyReused, TurnNotFound, TurnNotRetryable
from rag_assistant.records import UNSET, Message, PastTurn, Question, Source, Turn, TurnStatus, Unset
from rag_assistant.storage.conversations import insert_conversation, load_conversation
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import answer_parts, conversations, messages, now, receipts, turns


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
        with self._database.write() as connection:
            known = self._known(connection, question)
            if known is not None:
                return known, False
            conversation_id = question.conversation_id
            if conversation_id is None:
                conversation_id = insert_conversation(connection, title)
            conversation = load_conversation(connection, conversation_id, lock=True)
            _refuse_while_running(connection, conversation_id)
            number = conversation["turns"] + 1
            turn_id = connection.execute(
                insert(turns)
                .values(
                    conversation_id=conversation_id,
                    number=number,
                    status="running",
                    visible=False,
                    owner=self._owner,
                    request=_request_of(question),
                    idempotency_key=question.idempotency_key,
                    request_hash=_hash_of(question) if question.idempotency_key else None,
                    created_at=now(),
                )
                .returning(turns.c.id)
            ).scalar_one()
            connection.execute(
                insert(messages).values(turn_id=turn_id, position=0, role="user", content=question.text, extra=None)
            )
            connection.execute(
                update(conversations)
                .where(conversations.c.id == conversation_id)
                .values(turns=number, updated_at=now())
            )
            return _load_turn(connection, turn_id), True

    def run_again(self, turn_id: int) -> Turn:
        """Make a failed turn a running one again. It must be the conversation's last; raises TurnNotRetryable."""
        with self._database.write() as connection:
            turn = _load_turn(connection, turn_id)
            conversation = load_conversation(connection, turn.conversation_id, lock=True)
            _refuse_while_running(connection, turn.conversation_id)
            if turn.status != "failed":
                raise TurnNotRetryable(
                    f"Turn {turn_id} is {turn.status}; only a failed one can be retried. Ask the question again."
                )
            if conversation["turns"] != turn.number:
                raise TurnNotRetryable(
                    f"Turn {turn_id} is not the last of its conversation any more. Ask the question again."
                )
            connection.execute(
                update(turns)
                .where(turns.c.id == turn_id)
                .values(
                    status="running",
                    owner=self._owner,
                    error_type=None,
                    error_message=None,
                    finished_at=None,
                    history=None,
                    sources=None,
                )
            )
            return _load_turn(connection, turn_id)

    def window(self, turn: Turn, max_turns: int | None) -> list[PastTurn]:
        """Return the newest ``max_turns`` turns before ``turn`` that a model may see, oldest first.

        Reads those turns and no others; ``None`` reads them all.
        """
        if max_turns == 0:
            return []
        with self._database.read() as connection:
            rows = connection.execute(
                _WINDOW if max_turns is not None else _WHOLE_WINDOW,
                {"conversation": turn.conversation_id, "before": turn.number, "limit": max_turns},
            ).all()
        past: dict[int, list[Message]] = {}
        for number, role, content, extra in rows:
            past.setdefault(number, []).append({"role": role, "content": content} | (extra or {}))
        return [PastTurn(number, tuple(said)) for number, said in past.items()]

    def keep_receipt(self, turn_id: int, history: dict[str, Any], sources: Sequence[Source], receipt: Any) -> None:
        """Keep what is about to be sent to the model, before it is sent."""
        with self._database.write() as connection:
            connection.execute(
                update(turns)
                .where(turns.c.id == turn_id)
                .values(history=history, sources=[source_as_dict(source) for source in sources])
            )
            connection.execute(delete(receipts).where(receipts.c.turn_id == turn_id))
            connection.execute(insert(receipts).values(turn_id=turn_id, body=receipt))

    def receipt(self, turn_id: int) -> dict[str, Any] | None:
        """Return a turn's receipt, ``None`` while there is none. Raises TurnNotFound."""
        with self._database.read() as connection:
            load_conversation(connection, _load_turn(connection, turn_id).conversation_id)
            body: dict[str, Any] | None = connection.execute(
                select(receipts.c.body).where(receipts.c.turn_id == turn_id)
            ).scalar()
            return body

    def finish(
        self,
        turn_id: int,
        status: TurnStatus,
        answer: str,
        *,
        usage: dict[str, Any] | None = None,
        model: str | None = None,
        sources: Sequence[Source] | None = None,
        error: tuple[str, str] | None = None,
    ) -> Turn:
        """End a running turn with its whole answer, and return it; a turn that has ended stays as it is.

        An answer with text makes the turn visible to the model; a turn without text never is.
        """
        with self._database.write() as connection:
            return _finish(connection, turn_id, status, answer, usage, model, sources, error)

    def interrupt_unfinished(self) -> list[Turn]:
        """End the turns of this owner that a crash left running, with the text that was committed, and return them."""
        with self._database.write() as connection:
            left = connection.execute(
                select(turns.c.id).where(turns.c.status == "running", turns.c.owner == self._owner)
            ).scalars()
            return [
                _finish(connection, turn_id, "interrupted", committed_text(connection, turn_id), error=CRASHED)
                for turn_id in list(left)
            ]

    def get(self, turn_id: int) -> Turn:
        """Return one turn; the answer of a running one is what is committed so far.

        Raises TurnNotFound, or ConversationNotFound if its conversation was deleted.
        """
        with self._database.read() as connection:
            turn = _load_turn(connection, turn_id)
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
            return _as_turns(connection, reversed(rows))

    def horizon(self, conversation_id: int, max_turns: int | None) -> int | None:
        """Return the number of the first turn that the next question's model would see, ``None`` if it sees none."""
        visible = select(turns.c.number).where(turns.c.conversation_id == conversation_id, turns.c.visible)
        query = visible.order_by(turns.c.number)
        if max_turns is not None:
            query = visible.order_by(turns.c.number.desc()).limit(max_turns)
        with self._database.read() as connection:
            numbers = connection.execute(query.limit(1) if max_turns is None else query).scalars().all()
            return numbers[-1] if numbers else None

    def running_here(self) -> int:
        """Return how many turns of this owner are running."""
        with self._database.read() as connection:
            return len(
                connection.execute(
                    select(turns.c.id).where(turns.c.status == "running", turns.c.owner == self._owner)
                ).all()
            )

    def _known(self, connection: Connection, question: Question) -> Turn | None:
        if question.idempotency_key is None:
            return None
        row = connection.execute(
            select(turns.c.id, turns.c.request_hash).where(turns.c.idempotency_key == question.idempotency_key)
        ).first()
        if row is None:
            return None
        if row.request_hash != _hash_of(question):
            raise IdempotencyKeyReused(question.idempotency_key)
        return _load_turn(connection, row.id)


CRASHED = ("AnswerInterrupted", "The server ended while it was answering. What was written so far is kept.")


def committed_text(connection: Connection, turn_id: int) -> str:
    """Return the text of a running answer as far as it is committed."""
    parts = connection.execute(
        select(answer_parts.c.text).where(answer_parts.c.turn_id == turn_id).order_by(answer_parts.c.position)
    ).scalars()
    return "".join(parts)


def source_as_dict(source: Source) -> dict[str, Any]:
    """Return a source in the shape in which it is kept and shown."""
    return {name: getattr(source, name) for name in Source.__dataclass_fields__}


def _window_query(limited: bool) -> Any:
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


def _finish(
    connection: Connection,
    turn_id: int,
    status: TurnStatus,
    answer: str,
    usage: dict[str, Any] | None = None,
    model: str | None = None,
    sources: Sequence[Source] | None = None,
    error: tuple[str, str] | None = None,
) -> Turn:
    turn = _load_turn(connection, turn_id)
    if turn.status != "running":
        return turn
    values: dict[str, Any] = {"status": status, "visible": bool(answer.strip()), "usage": usage, "finished_at": now()}
    if model is not None:
        values["model"] = model
    if sources is not None:
        values["sources"] = [source_as_dict(source) for source in sources]
    if error is not None:
        values["error_type"], values["error_message"] = error
    connection.execute(update(turns).where(turns.c.id == turn_id).values(values))
    connection.execute(delete(answer_parts).where(answer_parts.c.turn_id == turn_id))
    changed: dict[str, Any] = {"updated_at": now()}
    if answer:
        connection.execute(
            insert(messages).values(turn_id=turn_id, position=1, role="assistant", content=answer, extra=None)
        )
    if answer.strip():
        changed["visible_turns"] = conversations.c.visible_turns + 1
        changed["visible_messages"] = conversations.c.visible_messages + 2
    connection.execute(update(conversations).where(conversations.c.id == turn.conversation_id).values(changed))
    return _load_turn(connection, turn_id)


def _refuse_while_running(connection: Connection, conversation_id: int) -> None:
    running = select(turns.c.id).where(turns.c.conversation_id == conversation_id, turns.c.status == "running")
    if connection.execute(running).first() is not None:
        raise ConversationBusy(conversation_id)


def _request_of(question: Question) -> dict[str, Any]:
    """Return what was asked for besides the question; what was not said is not there."""
    request: dict[str, Any] = {}
    if not isinstance(question.max_history_turns, Unset):
        request["max_history_turns"] = question.max_history_turns
    if question.document_ids:
        request["document_ids"] = list(question.document_ids)
    return request


def _hash_of(question: Question) -> str:
    whole = [question.text, question.conversation_id, _request_of(question)]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _load_turn(connection: Connection, turn_id: int) -> Turn:
    row = connection.execute(select(turns).where(turns.c.id == turn_id)).mappings().first()
    if row is None:
        raise TurnNotFound(turn_id)
    return _as_turns(connection, [row])[0]


def _as_turns(connection: Connection, rows: Iterable[RowMapping]) -> list[Turn]:
    rows = list(rows)
    said: dict[int, dict[str, str]] = {row["id"]: {} for row in rows}
    for turn_id, role, content in connection.execute(
        select(messages.c.turn_id, messages.c.role, messages.c.content)
        .where(messages.c.turn_id.in_(said))
        .order_by(messages.c.turn_id, messages.c.position)
    ):
        said[turn_id][role] = content or ""
    return [
        Turn(
            id=row["id"],
            conversation_id=row["conversation_id"],
            number=row["number"],
            status=row["status"],
            question=said[row["id"]]["user"],
            answer=(
                committed_text(connection, row["id"])
                if row["status"] == "running"
                else said[row["id"]].get("assistant", "")
            ),
            created_at=row["created_at"],
            finished_at=row["finished_at"],
            max_history_turns=row["request"].get("max_history_turns", UNSET),
            document_ids=tuple(row["request"].get("document_ids", ())),
            history=row["history"],
            sources=tuple(Source(**source) for source in row["sources"] or ()),
            usage=row["usage"],
            model=row["model"],
            error_type=row["error_type"],
            error_message=row["error_message"],
        )
        for row in rows
    ]
