"""Turns as records: the reading half of turns.py."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select

from rag_assistant.errors import TurnNotFound
from rag_assistant.records import UNSET, Question, Source, Turn, Unset
from rag_assistant.storage.tables import answer_parts, messages, turns

_TURN = select(turns).where(turns.c.id == bindparam("turn"))
_SAID = (
    select(messages.c.turn_id, messages.c.role, messages.c.content)
    .where(messages.c.turn_id.in_(bindparam("turns", expanding=True)))
    .order_by(messages.c.turn_id, messages.c.position)
)
_PARTS = (
    select(answer_parts.c.text).where(answer_parts.c.turn_id == bindparam("turn")).order_by(answer_parts.c.position)
)


def load_turn(connection: Connection, turn_id: int) -> Turn:
    """Return one turn; the answer of a running one is what is committed so far. Raises TurnNotFound."""
    row = connection.execute(_TURN, {"turn": turn_id}).mappings().first()
    if row is None:
        raise TurnNotFound(turn_id)
    return as_turns(connection, [row])[0]


def as_turns(connection: Connection, rows: Iterable[RowMapping]) -> list[Turn]:
    """Return the records of rows, in their order."""
    rows = list(rows)
    said: dict[int, dict[str, str]] = {row["id"]: {} for row in rows}
    for turn_id, role, content in connection.execute(_SAID, {"turns": list(said)}):
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


def committed_text(connection: Connection, turn_id: int) -> str:
    """Return the text of a running answer as far as it is committed."""
    return "".join(connection.execute(_PARTS, {"turn": turn_id}).scalars())


def request_of(question: Question) -> dict[str, Any]:
    """Return what was asked for besides the question; what was not said is not there."""
    request: dict[str, Any] = {}
    if not isinstance(question.max_history_turns, Unset):
        request["max_history_turns"] = question.max_history_turns
    if question.document_ids:
        request["document_ids"] = list(question.document_ids)
    return request


def hash_of(question: Question) -> str:
    """Return what tells one request from another under the same Idempotency-Key."""
    whole = [question.text, question.conversation_id, request_of(question)]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
