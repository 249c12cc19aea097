"""How answers are stored: text while it streams, the end of a turn, and messages as rows."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Integer, Text, bindparam, delete, insert, select, update

from rag_assistant.records import PURGED, Message, Turn
from rag_assistant.storage.conversations.counters import recount
from rag_assistant.storage.conversations.turn_rows import CALLS, load_turn
from rag_assistant.storage.database import Database
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.tables import answer_parts, conversations, messages, now, turns

# How many characters of a turn are searchable; PostgreSQL accepts a megabyte at most.
MAX_INDEXED_CHARS = 200_000

_LOCK = select(conversations.c.id).where(conversations.c.id == bindparam("conversation")).with_for_update()
_PURGE = update(turns).where(turns.c.id == bindparam("turn")).values(visible=False, purged=True, waiting=None)
_COUNT = (
    update(conversations)
    .where(conversations.c.id == bindparam("conversation"))
    .values(
        visible_turns=conversations.c.visible_turns + bindparam("more_turns"),
        visible_messages=conversations.c.visible_messages + bindparam("more_messages"),
        updated_at=bindparam("moment"),
        listed=conversations.c.listed | bindparam("answered"),
        unread=conversations.c.unread | bindparam("unseen"),
    )
)
_DROP_PARTS = delete(answer_parts).where(answer_parts.c.turn_id == bindparam("turn"))
_END = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), turns.c.status == "running", turns.c.owner == bindparam("present_owner"))
    .values(message_count=turns.c.message_count + bindparam("more"))
    .returning(turns.c.message_count)
)
_COUNT_MESSAGES = (
    update(turns)
    .where(turns.c.id == bindparam("turn"))
    .values(message_count=turns.c.message_count + bindparam("more"))
    .returning(turns.c.message_count)
)
INSERT_MESSAGE = insert(messages)
# Columns that take the turn's fields of the same name at its end.
ENDED = (
    *("status", "purged", "waiting", "history", "notes", "usage", "model", "sources", "search"),
    *("error_type", "error_message", "finished_at"),
)


def lock_conversation(connection: Connection, conversation_id: int) -> None:
    """Lock a conversation against other writers; SQLite has one writer anyway.

    Everybody locks a conversation before its turns, to avoid deadlocks.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK, {"conversation": conversation_id})


def end_turn(connection: Connection, turn: Turn, owner: str, words: str) -> Turn:
    """End a running turn of ``owner``, found by some words, and return it as stored; any other one stays unchanged."""
    moment, answer, wait = now(), turn.answer, turn.retry_after_seconds
    purged = turn.confirms_turn is not None and turn.status == "completed"
    turn = replace(turn, finished_at=moment, purged=purged)
    visible = turn.may_be_seen
    lock_conversation(connection, turn.conversation_id)
    ended = {name: getattr(turn, name) for name in ENDED} | {
        "turn": turn.id,
        "present_owner": owner,
        "more": int(bool(answer)),
        "visible": visible,
        "retry_at": None if wait is None else moment + timedelta(seconds=wait),
    }
    count = connection.execute(_END, ended).scalar()
    if count is None:
        return load_turn(connection, turn.id)
    connection.execute(_DROP_PARTS, {"turn": turn.id})
    if answer:
        connection.execute(INSERT_MESSAGE, message_row(turn.id, count - 1, "assistant", answer))
    if words:
        TURN_WORDS.insert(connection, [(turn.id, words)])
    more = {
        "conversation": turn.conversation_id,
        "moment": moment,
        "more_turns": int(visible),
        "more_messages": count * visible,
        "answered": turn.status != "failed",
        "unseen": turn.unseen,
    }
    connection.execute(_COUNT, more)
    if turn.waiting is not None or turn.pinned or not visible:
        if turn.confirms_turn is not None and purged:
            _purge(connection, turn.confirms_turn)
        recount(connection, turn.conversation_id)
    return turn


def _purge(connection: Connection, turn_id: int) -> None:
    """Hide a completed confirmation from the model: the call that asked for it, or its turn if there was no other."""
    waiting = connection.execute(select(turns.c.waiting).where(turns.c.id == turn_id)).scalar_one() or {}
    of_turn = messages.c.turn_id == turn_id
    extras = connection.execute(select(messages.c.extra).where(of_turn).order_by(messages.c.position)).scalars().all()
    # A call's result follows at its place; ids may repeat.
    calls = [(n + i, call) for n, extra in enumerate(extras, 1) for i, call in enumerate((extra or {}).get(CALLS, ()))]
    pending = waiting.get("call_id"), waiting.get("tool")
    own = [n for n, call in calls if (call["id"], call["function"]["name"]) == pending]
    if len(calls) < 2 or not own:
        connection.execute(_PURGE, {"turn": turn_id})
        return
    marked = {**extras[own[-1]], PURGED: True}
    connection.execute(update(messages).where(of_turn, messages.c.position == own[-1]).values(extra=marked))
    connection.execute(update(turns).where(turns.c.id == turn_id).values(waiting=None))


def words_found_by(question: str, answer: str, words_of: Callable[[str], str]) -> str:
    """Return the words by which a turn is found, none without an answer. Slow for a long one: open no transaction."""
    if not answer.strip():
        return ""
    return words_of(f"{question}\n{answer}"[:MAX_INDEXED_CHARS])


def insert_messages(connection: Connection, turn_id: int, new_messages: Sequence[Message]) -> None:
    """Append messages to a turn."""
    count = connection.execute(_COUNT_MESSAGES, {"turn": turn_id, "more": len(new_messages)}).scalar_one()
    connection.execute(INSERT_MESSAGE, message_rows(turn_id, new_messages, count - len(new_messages)))


def message_rows(turn_id: int, new_messages: Sequence[Message], first: int = 0) -> list[dict[str, Any]]:
    """Return messages as rows, from position ``first`` on."""
    rows = []
    for position, message in enumerate(new_messages, first):
        extra = {name: value for name, value in message.items() if name not in ("role", "content")}
        rows.append(message_row(turn_id, position, message["role"], message.get("content"), extra or None))
    return rows


def message_row(
    turn_id: int, position: int, role: str, content: str | None, extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a message as a row; ``extra`` is what it has besides role and content."""
    return {"turn_id": turn_id, "position": position, "role": role, "content": content, "extra": extra}


_OURS = turns.c.status == "running", turns.c.owner == bindparam("present_owner")
# Another process that ends a turn for us locks its row: we wait, and look again.
_APPEND = insert(answer_parts).from_select(
    ["turn_id", "position", "text"],
    select(turns.c.id, bindparam("position", type_=Integer), bindparam("text", type_=Text))
    .where(turns.c.id == bindparam("turn"), *_OURS)
    .with_for_update(read=True, key_share=True),
)
_STILL_OURS = select(turns.c.id).where(turns.c.id.in_(bindparam("turns", expanding=True)), *_OURS)

# A turn, the position in its answer, and the text.
Piece = tuple[int, int, str]


class AnswerLog(Struct):
    """Appends text to running answers, many in one transaction.

    ``owner`` names this process: writing to a turn that another process has ended is refused. ``tell`` is called in the
    transaction, with the turns that have new text.
    """

    database: Database
    owner: str
    tell: Callable[[Connection, set[int]], None] = lambda *_: None

    def append_all(self, pieces: Sequence[Piece]) -> set[int]:
        """Commit pieces of many answers, and return the turns that another process has ended, which got nothing.

        Raises StorageFailed if nothing could be committed.
        """
        turn_ids = {turn_id for turn_id, _, _ in pieces}
        ours, own = turn_ids, {"present_owner": self.owner}
        with self.database.write(forced=False) as connection:
            rows = [{"turn": turn_id, "position": position, "text": text, **own} for turn_id, position, text in pieces]
            if connection.execute(_APPEND, rows, execution_options={"preserve_rowcount": True}).rowcount < len(rows):
                ours = set(connection.execute(_STILL_OURS, {"turns": list(turn_ids), **own}).scalars())
            self.tell(connection, turn_ids)
        return turn_ids - ours
