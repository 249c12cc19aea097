"""Turns of other conversations, and notes, sent with a question.

Their use is recorded, so that erasing a turn rewrites every receipt and source that contains it (erasing.py).
"""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Subquery, exists, func, select, true, tuple_

from rag_assistant.history.erasing import Place
from rag_assistant.records import Conversation, Turn
from rag_assistant.records.errors import TurnErasedMeanwhile
from rag_assistant.storage.conversations.turn_rows import as_turns
from rag_assistant.storage.database import insert_rows
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.tables import conversations, notes, sent_elsewhere, turns

# A turn is sent from this certainty on (bench/history.md).
MIN_CERTAINTY = 0.2
# Its copies in branches are found as well.
CANDIDATES = 4
_ORIGIN = func.coalesce(turns.c.origin_id, turns.c.id)


def find_elsewhere(
    connection: Connection, conversation: Conversation, words: Sequence[str], limit: int, *, in_project: bool
) -> list[tuple[Turn, float]]:
    """Return up to ``limit`` turns of a person's other conversations that match ``words``, most certain first.

    With ``in_project`` only those in the same project. Each comes once with its certainty, however many branches have
    it, and none that this conversation has a copy of.
    """
    this, other = conversations.alias("this"), conversations.alias("other")
    only = exists().where(
        turns.c.id == TURN_WORDS.row_id(connection),
        turns.c.visible,
        turns.c.conversation_id != conversation.id,
        other.c.id == turns.c.conversation_id,
        other.c.deleted_at.is_(None),
        this.c.id == conversation.id,
        this.c.person_id.is_not_distinct_from(other.c.person_id),
        this.c.project_id == other.c.project_id if in_project else true(),
    )
    surest = dict(TURN_WORDS.surest(connection, words, CANDIDATES * limit, only)) if words else {}
    sure = [turn_id for turn_id, certainty in surest.items() if certainty >= MIN_CERTAINTY]
    if not sure:
        return []
    origins = dict(connection.execute(select(turns.c.id, _ORIGIN).where(turns.c.id.in_(sure))).all())
    own = select(_ORIGIN).where(turns.c.conversation_id == conversation.id, _ORIGIN.in_(set(origins.values())))
    mine = set(connection.execute(own).scalars())
    best: dict[int, int] = {}
    for turn_id in sorted(sure, key=lambda one: (-surest[one], -one)):
        if origins[turn_id] not in mine:
            best.setdefault(origins[turn_id], turn_id)
    chosen = list(best.values())[:limit]
    rows = {row["id"]: row for row in connection.execute(select(turns).where(turns.c.id.in_(chosen))).mappings()}
    best_turns = as_turns(connection, [rows[turn_id] for turn_id in chosen])
    return [(turn, round(surest[turn.id], 4)) for turn in best_turns]


def keep_sent_elsewhere(
    connection: Connection, turn_id: int, places: Collection[Place], note_ids: Collection[int]
) -> None:
    """Record that a turn's receipt contains turns of other conversations, and notes. Raises TurnErasedMeanwhile."""
    if not (places or note_ids):
        return
    those = tuple_(turns.c.conversation_id, turns.c.number).in_(places), turns.c.visible
    # Whoever erases one of them now waits, and finds this.
    sent = connection.execute(select(turns.c.id).where(*those).with_for_update(read=True)).scalars().all()
    noted = connection.execute(select(notes.c.turn_id).where(notes.c.id.in_(note_ids)).with_for_update(read=True))
    turns_noted = noted.scalars().all()
    if len(sent) < len(places) or len(turns_noted) < len(note_ids):
        raise TurnErasedMeanwhile
    own = select(sent_elsewhere.c.turn_id).where(sent_elsewhere.c.receipt_turn_id == turn_id)
    new = {*sent, *turns_noted} - {None, *connection.execute(own).scalars()}
    insert_rows(connection, sent_elsewhere, [{"turn_id": one, "receipt_turn_id": turn_id} for one in new])


def copy_sent_elsewhere(connection: Connection, pairs: Subquery) -> None:
    """Record the same for copied turns: ``pairs`` maps each old turn to its copy."""
    rows = select(sent_elsewhere.c.turn_id, pairs.c.new_id).join(
        pairs, pairs.c.old_id == sent_elsewhere.c.receipt_turn_id
    )
    connection.execute(sent_elsewhere.insert().from_select(["turn_id", "receipt_turn_id"], rows))
