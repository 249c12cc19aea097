"""Turns as records: the reading half of turns.py."""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from math import ceil
from typing import Any

from msgspec import to_builtins
from sqlalchemy import Connection, Select, and_, bindparam, exists, select, union

from rag_assistant.records import (
    MAX_INT32,
    PURGED,
    SCOPE_FIELDS,
    Conversation,
    DataUrl,
    Message,
    PastTurn,
    Question,
    Rating,
    Turn,
    Unset,
    with_pictures,
)
from rag_assistant.records.errors import TurnNotFound
from rag_assistant.storage.conversations.conversations import Row
from rag_assistant.storage.database import insert_rows, person_of, record_of
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import HELD, answer_parts, conversations, messages, now, pictures, ratings, turns

_SAID = (
    select(messages.c.turn_id, messages.c.role, messages.c.content, messages.c.extra)
    .where(messages.c.turn_id.in_(bindparam("turns", expanding=True)))
    .order_by(messages.c.turn_id, messages.c.position)
)
_RATED = select(ratings).where(ratings.c.turn_id.in_(bindparam("turns", expanding=True)))
_PARTS = (
    select(answer_parts.c.text).where(answer_parts.c.turn_id == bindparam("turn")).order_by(answer_parts.c.position)
)


def load_turn(connection: Connection, turn_id: int) -> Turn:
    """Return one turn; a running answer has the text committed so far. Raises TurnNotFound."""
    query = select(turns).where(turns.c.id == turn_id)
    if person_of(connection) is not None:
        own = conversations.c.id == turns.c.conversation_id, own_conversations(connection)
        query = query.where(exists().where(*own))
    row = connection.execute(query).mappings().first()
    if row is None:
        raise TurnNotFound(turn_id)
    return as_turns(connection, [row])[0]


def as_turns(connection: Connection, rows: Iterable[Row]) -> list[Turn]:
    """Return the records of rows, whose messages are the question, iterations, then the answer if there is one."""
    rows = list(rows)
    chats: dict[int, list[Message]] = {row["id"]: [] for row in rows}
    for turn_id, role, content, extra in connection.execute(_SAID, {"turns": list(chats)}):
        chats[turn_id].append({"role": role, "content": content} | (extra or {}))
    rated = {row["turn_id"]: row for row in connection.execute(_RATED, {"turns": list(chats)}).mappings()}
    records = []
    for row in rows:
        items, request, retry_at = chats[row["id"]], row["request"], row["retry_at"]
        answered = len(items) > 1 and items[-1]["role"] == "assistant" and "tool_calls" not in items[-1]
        answer = (items[-1]["content"] or "") if answered else ""
        wait = 0 if retry_at is None else ceil((retry_at - now()).total_seconds())
        own = {
            "question": (items[0]["content"] or "") if items else "",
            "answer": committed_text(connection, row["id"]) if row["status"] == "running" else answer,
            "scope": {name: request[name] for name in SCOPE_FIELDS if name in request},
            "images": items[0].get(IMAGES, ()) if items else (),
            "sources": row["sources"] or (),
            "retry_after_seconds": wait if wait > 0 else None,
            "iterations": items[1:-1] if answered else items[1:],
            "rating": record_of(rated[row["id"]], Rating) if row["id"] in rated else None,
        }
        records.append(record_of({**row, **request, **own}, Turn))
    return records


def committed_text(connection: Connection, turn_id: int) -> str:
    """Return the committed text of a running answer."""
    return "".join(connection.execute(_PARTS, {"turn": turn_id}).scalars())


def request_of(question: Question) -> dict[str, Any]:
    """Return the request options besides the question; unset ones are left out."""
    request: dict[str, Any] = {}
    if not isinstance(question.max_history_turns, Unset):
        request["max_history_turns"] = question.max_history_turns
    if not isinstance(question.scope, Unset):
        request |= {name: values for name, values in (question.scope.as_dict() or {}).items() if values}
    if question.on_overflow is not None:
        request["on_overflow"] = question.on_overflow
    if question.confirms_turn is not None:
        request["confirms_turn"] = question.confirms_turn
    if options := to_builtins(question.options):
        request["options"] = options
    return request


def hash_of(question: Question) -> str:
    """Return a hash that distinguishes requests with the same Idempotency-Key."""
    # Which question a plain "yes" answers is determined here, and changes once it is answered.
    asked_for = {name: value for name, value in request_of(question).items() if name != "confirms_turn"}
    whole: list[Any] = [question.text, question.conversation_id, asked_for]
    if question.project_id is not None:
        whole.append({"project_id": question.project_id})
    if question.edits_turn is not None:
        whole.append(question.edits_turn)
    if question.images:
        whole.append([picture_key(url) for url in question.images])
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


# The field of a message's row with its picture keys.
IMAGES = "images"
CALLS = "tool_calls"
# The same picture may be in many turns.
_URL = select(pictures.c.url).where(pictures.c.key == bindparam("key")).limit(1)


def picture_key(url: DataUrl) -> str:
    """Return the key of a picture: 132 bits of its SHA-256."""
    return urlsafe_b64encode(sha256(url.encode()).digest())[:22].decode()


def keep_pictures(connection: Connection, turn_id: int, urls: Collection[DataUrl]) -> None:
    """Store pictures sent with a turn's question, each once."""
    own = select(pictures.c.key).where(pictures.c.turn_id == turn_id)
    stored = set(connection.execute(own).scalars()) if urls else set()
    new = {key: url for url in urls if (key := picture_key(url)) not in stored}
    insert_rows(connection, pictures, [{"turn_id": turn_id, "key": key, "url": url} for key, url in new.items()])


def load_pictures(connection: Connection, keys: Iterable[str]) -> dict[str, DataUrl]:
    return {key: connection.execute(_URL, {"key": key}).scalar_one() for key in set(keys)}


def _in_view(*, with_held: bool) -> Select[Any]:
    """Return the messages of the newest turns in the view, with held turns."""
    own = and_(turns.c.conversation_id == bindparam("conversation"), turns.c.number < bindparam("before"))
    visible = select(turns.c.id).where(own, turns.c.visible, turns.c.number >= bindparam("first"))
    chosen = select(visible.order_by(turns.c.number.desc()).limit(bindparam("newest")).subquery().c.id)
    held = select(turns.c.id).where(own, HELD)
    those = (union(chosen, held) if with_held else chosen).subquery()
    return (
        select(turns.c.number, turns.c.pinned, turns.c.waiting, messages.c.role, messages.c.content, messages.c.extra)
        .join_from(those, turns, turns.c.id == those.c.id)
        .join(messages, messages.c.turn_id == those.c.id)
        .order_by(turns.c.number, messages.c.position)
    )


_IN_VIEW, _IN_VIEW_WITH_HELD = _in_view(with_held=False), _in_view(with_held=True)


def turns_in_view(
    connection: Connection, conversation: Conversation, first: int, before: int, newest: int | None, *, with_held: bool
) -> list[PastTurn]:
    """Return the ``newest`` turns in the view from number ``first`` to before another one, oldest first.

    ``None`` returns them all; ``with_held`` adds those that are sent wherever the window begins.
    """
    newest = MAX_INT32 if newest is None else min(newest, MAX_INT32)
    values = {"conversation": conversation.id, "first": first, "before": before, "newest": newest}
    rows = connection.execute(_IN_VIEW_WITH_HELD if with_held else _IN_VIEW, values).all()
    urls = load_pictures(connection, (key for row in rows for key in (row.extra or {}).get(IMAGES, ())))
    messages_of: dict[int, list[Message]] = {}
    marks: dict[int, tuple[bool, str | None]] = {}
    for number, pinned, waiting, role, content, extra in rows:
        message: Message = {"role": role, "content": content} | (extra or {})
        attached = [urls[key] for key in message.pop(IMAGES, ())]
        messages_of.setdefault(number, []).append(with_pictures(message, attached))
        marks[number] = (pinned, waiting["call_id"] if waiting else None)
    return [_past(number, spoken, *marks[number]) for number, spoken in messages_of.items()]


def _past(number: int, spoken: Sequence[Message], pinned: bool, waiting_call: str | None) -> PastTurn:
    """Return a turn without the calls whose results are purged."""
    rest: list[Message] = []
    purged = {n for n, message in enumerate(spoken) if message["role"] == "tool" and message.get(PURGED)}
    for n, message in enumerate(spoken):
        calls = message.get(CALLS, ())
        seen = [call for result, call in enumerate(calls, n + 1) if result not in purged]
        if n not in purged and (seen or not calls):
            rest.append({**message, CALLS: seen} if len(seen) < len(calls) else message)
    return PastTurn(number, tuple(rest), pinned, waiting_call, len(spoken) - len(rest))
