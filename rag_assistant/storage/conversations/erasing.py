"""Erase a turn permanently, with everything derived from it.

Its row and number stay; of an erased conversation nothing does. What other turns say about it stays.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, or_, select, update

from rag_assistant.history import erasing
from rag_assistant.records import UNTITLED, Turn
from rag_assistant.records.errors import ConversationBusy, ConversationNotFound, NotInTrash
from rag_assistant.storage.conversations.conversations import (
    Row,
    drop_conversations,
    list_again,
    load_conversation,
    refuse_while_running,
)
from rag_assistant.storage.conversations.counters import recount
from rag_assistant.storage.conversations.history import VIEW
from rag_assistant.storage.conversations.receipts import keep_body
from rag_assistant.storage.conversations.turn_rows import load_turn
from rag_assistant.storage.conversations.versions import take_answer_off
from rag_assistant.storage.database import Database, set_values
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import (
    answer_parts,
    answer_versions,
    conversations,
    history_changes,
    messages,
    notes,
    now,
    pictures,
    ratings,
    receipts,
    sent_elsewhere,
    summaries,
    turns,
)

TURNS_AT_ONCE = 100

# What is left of a turn's own row.
ERASED: dict[str, Any] = {
    "status": "erased",
    "message_count": 0,
    "request": {},
    "idempotency_key": None,
    "request_hash": None,
    "waiting": None,
    "pinned": False,
    "excluded": False,
    "purged": False,
    "version": 1,
    "versions": 1,
}


class TurnEraser:
    """Erases turns. ``title_for`` makes a title from a conversation's first question."""

    def __init__(self, database: Database, title_for: Callable[[str], str]) -> None:
        self._database = database
        self._title_for = title_for

    def erase(self, turn_id: int) -> Turn:
        """Erase a turn and its copies in branches, from the file too, and return what is left of it.

        Erasing it again changes nothing. Raises TurnNotFound, ConversationNotFound, and ConversationBusy while it, or a
        later turn that may contain it, is being answered.
        """
        with self._database.write() as connection:
            turn = load_turn(connection, turn_id)
            load_conversation(connection, turn.conversation_id)
            if turn.status != "erased":
                of_turn = select(turns.c.origin_id).where(turns.c.id == turn_id)
                origin = connection.execute(of_turn).scalar() or turn_id
                # Conversation by conversation.
                copies = select(turns.c.id).where(or_(turns.c.id == origin, turns.c.origin_id == origin))
                for copy_id in connection.execute(copies.order_by(turns.c.conversation_id)).scalars().all():
                    self._erase_one(connection, copy_id)
            turn = load_turn(connection, turn_id)
        self._database.forget_deleted()
        return turn

    def erase_conversation(self, conversation_id: int, *, in_trash: bool = False) -> None:
        """Erase a whole conversation, from the file too. This can't be undone.

        With ``in_trash`` only if it is in the trash. Raises ConversationNotFound if it never existed, NotInTrash, and
        ConversationBusy while it, or another one that was sent a turn of it, is being answered.
        """
        with self._database.write() as connection:
            this = conversations.c.id == conversation_id, own_conversations(connection)
            row = connection.execute(select(conversations).where(*this).with_for_update()).mappings().first()
            if row is None:
                raise ConversationNotFound(conversation_id)
            if in_trash and row["deleted_at"] is None:
                raise NotInTrash(conversation_id)
            refuse_while_running(connection, row)
            _take_out_elsewhere(connection, select(turns.c.id).where(turns.c.conversation_id == conversation_id))
            drop_conversations(connection, conversations.c.id == conversation_id)
            list_again(connection, row["origin_id"])
        self._database.forget_deleted()

    def _erase_one(self, connection: Connection, turn_id: int) -> None:
        of_turn = select(turns.c.conversation_id).where(turns.c.id == turn_id).scalar_subquery()
        # Also one in the trash, locked against other writers.
        locked = select(conversations).where(conversations.c.id == of_turn).with_for_update()
        conversation = connection.execute(locked).mappings().one()
        refuse_while_running(connection, conversation)
        turn = load_turn(connection, turn_id)
        _take_out_of_later_turns(connection, turn)
        _take_out_elsewhere(connection, [turn_id])
        take_answer_off(connection, turn_id, ERASED | {"erased_at": now()})
        for table in (messages, pictures, answer_parts, answer_versions, ratings, notes):
            connection.execute(delete(table).where(table.c.turn_id == turn_id))
        self._rename(connection, conversation, turn.question)
        _drop_summaries(connection, conversation, turn)
        recount(connection, turn.conversation_id)

    def _rename(self, connection: Connection, conversation: Row, question: str) -> None:
        """If the title came from the erased question, make one from the first question left."""
        if not " ".join(question.split()).startswith(conversation["title"].removesuffix("…")):
            return
        first_left = (
            select(messages.c.content)
            .join_from(turns, messages, messages.c.turn_id == turns.c.id)
            .where(turns.c.conversation_id == conversation["id"], messages.c.position == 0)
            .order_by(turns.c.number)
            .limit(1)
        )
        left = connection.execute(first_left).scalar()
        title = self._title_for(left) if left else UNTITLED
        set_values(connection, conversations, conversation["id"], {"title": title})


def _drop_summaries(connection: Connection, conversation: Row, turn: Turn) -> None:
    """Drop all summaries made from a turn: the window applies again to the turns they covered.

    Undo can't restore such a summary; a change with nothing left to undo is dropped.
    """
    own = summaries.c.conversation_id == turn.conversation_id
    gone = {
        summary_id
        for summary_id, covered in connection.execute(select(summaries.c.id, summaries.c.covered).where(own))
        if any(first <= turn.number <= last for first, last in covered)
    }
    later = _without(gone, {name: conversation[name] for name in VIEW})
    if conversation["summary_id"] in gone:
        set_values(connection, conversations, turn.conversation_id, later)
    if gone:
        connection.execute(delete(summaries).where(summaries.c.id.in_(gone)))
    changes = select(history_changes).where(history_changes.c.conversation_id == turn.conversation_id)
    for change in connection.execute(changes.order_by(history_changes.c.id.desc())).mappings().all():
        before = _without(gone, change["before"])
        same_view = all(before[name] == later[name] for name in ("context_start", "view_start", "summary_id"))
        about_summary = change["kind"] in ("compact", "edit summary") and same_view
        here = history_changes.c.id == change["id"]
        if about_summary or str(turn.id) in before.get("marks", {}):
            connection.execute(delete(history_changes).where(here))
        elif before != change["before"]:
            connection.execute(update(history_changes).where(here).values(before=before))
        later = before


def _without(gone: set[int], state: dict[str, Any]) -> dict[str, Any]:
    """Return a view state without the summaries that are gone."""
    if state["summary_id"] not in gone:
        return state
    return state | {"summary_id": None, "view_start": state["context_start"]}


# Returns what changes in an answer's figures, and its receipt.
Change = Callable[[Mapping[Any, Any], erasing.Receipt | None], tuple[dict[str, Any], erasing.Receipt | None]]


def _change_answers(connection: Connection, turn_id: int, change: Change) -> None:
    """Change the figures and receipts of all answers of a turn, of which the current one is stored with the turn."""
    query = select(turns, receipts.c.body).join_from(turns, receipts, receipts.c.turn_id == turns.c.id, isouter=True)
    others = select(answer_versions).where(answer_versions.c.turn_id == turn_id)
    row = connection.execute(query.where(turns.c.id == turn_id)).mappings().one()
    figures, body = change(row, row["body"])
    set_values(connection, turns, turn_id, figures)
    if body is not None:
        keep_body(connection, turn_id, body)
    for other in connection.execute(others).mappings().all():
        figures, body = change(other["figures"], other["receipt"])
        this = answer_versions.c.turn_id == turn_id, answer_versions.c.version == other["version"]
        values = {"figures": other["figures"] | figures, "receipt": body}
        connection.execute(update(answer_versions).where(*this).values(values))


def _take_out_of_later_turns(connection: Connection, turn: Turn) -> None:
    """Remove a turn from the stored requests of later ones."""
    query = (
        select(turns.c.id, turns.c.number, turns.c.history, turns.c.search, turns.c.versions, receipts.c.body)
        .join_from(turns, receipts, receipts.c.turn_id == turns.c.id, isouter=True)
        .where(turns.c.conversation_id == turn.conversation_id)
        .order_by(turns.c.number)
        .limit(TURNS_AT_ONCE)
    )
    without = partial(_without_turn, turn.number)
    seen = turn.number
    while rows := connection.execute(query.where(turns.c.number > seen)).mappings().all():
        seen = rows[-1]["number"]
        for later in rows:
            if later["versions"] > 1 or without(later, later["body"]) != ({"search": later["search"]}, later["body"]):
                _change_answers(connection, later["id"], without)


def _without_turn(
    number: int, figures: Mapping[Any, Any], body: erasing.Receipt | None
) -> tuple[dict[str, Any], erasing.Receipt | None]:
    """Return a later answer's search figures and receipt without turn ``number``."""
    limit = (figures["history"] or {}).get("max_history_turns")
    leans = erasing.may_lean_on(number, (body or {}).get("kept_turns", ()), limit)
    search = erasing.search_without(figures["search"]) if leans else figures["search"]
    return {"search": search}, body and erasing.receipt_without(body, number, limit)


def _take_out_elsewhere(connection: Connection, turn_ids: Any) -> None:
    """Remove turns, given as a list or query of ids, from the stored answers of other conversations.

    Raises ConversationBusy while one of these answers is being written.
    """
    connection.execute(select(turns.c.id).where(turns.c.id.in_(turn_ids)).with_for_update())
    query = (
        select(sent_elsewhere.c.receipt_turn_id, turns.c.conversation_id, turns.c.number)
        .join(turns, turns.c.id == sent_elsewhere.c.turn_id)
        .where(sent_elsewhere.c.turn_id.in_(turn_ids))
    )
    places: dict[int, set[erasing.Place]] = {}
    for receipt_turn_id, conversation_id, number in connection.execute(query):
        places.setdefault(receipt_turn_id, set()).add((conversation_id, number))
    for turn_id, erased in places.items():
        _change_answers(connection, turn_id, partial(_without_places, erased))


def _without_places(
    erased: Collection[erasing.Place], figures: Mapping[Any, Any], body: erasing.Receipt | None
) -> tuple[dict[str, Any], erasing.Receipt | None]:
    """Return an answer's sources and receipt without turns of other conversations. Raises ConversationBusy."""
    if figures["status"] == "running":
        raise ConversationBusy(figures["conversation_id"])
    sources = erasing.sources_without(figures["sources"], erased)
    return {"sources": sources}, body and erasing.receipt_without_elsewhere(body, erased)
