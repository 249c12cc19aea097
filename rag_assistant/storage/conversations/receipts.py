"""Receipts: the request bodies of a turn as they were sent, and what was left out of them.

Pictures are stored once and referred to by key, since each is sent again with the turns that follow.

Each receipt records which earlier turns its requests may contain, so that erasing one doesn't read all later receipts.
They are stored as runs of turns, indexed by length: a run of 2^(k - 1) to 2^k - 1 turns that contains a turn begins at
most 2^k - 2 turns before it. The record may name too many turns, never too few. Turns of other conversations, and
notes, are recorded for the same reason (erasing.py).
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, select, text, tuple_

from rag_assistant.history.erasing import Receipt, Run, search_without, turns_in
from rag_assistant.records import MAX_INT32, DataUrl, Message, Turn, pictures_in, text_in, with_pictures
from rag_assistant.records.errors import TurnErasedMeanwhile
from rag_assistant.storage.conversations.turn_rows import load_pictures, picture_key
from rag_assistant.storage.database import as_json, insert_rows
from rag_assistant.storage.tables import notes, receipts, sent_elsewhere, turns

_BODY = select(receipts.c.body).where(receipts.c.turn_id == bindparam("turn"))
_KEEP = text(
    "INSERT INTO receipts (turn_id, body) VALUES (:turn, :body) "
    "ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body"
).bindparams(bindparam("body", type_=receipts.c.body.type))
_INSERT = text(
    "INSERT INTO sent_turns (conversation_id, magnitude, first_turn, number, last_turn) "
    "VALUES (:conversation, :magnitude, :first, :number, :last) ON CONFLICT DO NOTHING"
)
# How many turns before it a run of each magnitude may begin.
_REACHES = ", ".join(f"({magnitude}, {(1 << magnitude) - 2})" for magnitude in range(1, MAX_INT32.bit_length() + 1))
_HOLDING = text(
    # SQLite evaluates the left side of CROSS JOIN first.
    f"WITH magnitudes (magnitude, reach) AS (VALUES {_REACHES}) "  # noqa: S608 - numbers of ours
    "SELECT DISTINCT number FROM magnitudes CROSS JOIN sent_turns "
    "WHERE conversation_id = :conversation AND sent_turns.magnitude = magnitudes.magnitude "
    "AND first_turn BETWEEN :turn - reach AND :turn AND last_turn >= :turn ORDER BY number"
)


def keep_receipt(connection: Connection, turn: Turn, receipt: Receipt) -> None:
    """Store a turn's receipt, replacing an earlier one. Raises TurnErasedMeanwhile."""
    runs = turns_in(receipt, turn.number, (turn.history or {}).get("max_history_turns"))
    keep_sent_turns(connection, turn.conversation_id, turn.number, runs)
    places = [(one["conversation_id"], one["turn"]) for one in receipt.get("past_turns", ())]
    note_ids = receipt.get("notes", ())
    if places or note_ids:
        those = tuple_(turns.c.conversation_id, turns.c.number).in_(places), turns.c.visible
        # Whoever erases one of them now waits, and finds this.
        sent = connection.execute(select(turns.c.id).where(*those).with_for_update(read=True)).scalars().all()
        noted = connection.execute(select(notes.c.turn_id).where(notes.c.id.in_(note_ids)).with_for_update(read=True))
        turns_noted = noted.scalars().all()
        if len(sent) < len(places) or len(turns_noted) < len(note_ids):
            raise TurnErasedMeanwhile
        own = select(sent_elsewhere.c.turn_id).where(sent_elsewhere.c.receipt_turn_id == turn.id)
        new = {*sent, *turns_noted} - {None, *connection.execute(own).scalars()}
        insert_rows(connection, sent_elsewhere, [{"turn_id": one, "receipt_turn_id": turn.id} for one in new])
    keep_body(connection, turn.id, _with_pictures(receipt, picture_key))


def keep_body(connection: Connection, turn_id: int, body: Receipt) -> None:
    """Store a receipt, with pictures as keys, replacing an earlier one."""
    connection.execute(_KEEP, {"turn": turn_id, "body": body})


def load_receipt(connection: Connection, turn_id: int) -> Receipt | None:
    """Return a turn's receipt, ``None`` if it has none.

    ``prefix_sha256`` is the hash of the JSON of the messages before the question: where two requests share it, a
    provider can serve these messages from its cache. A receipt with an erased part has none, since a hash allows
    guessing what it was made of.
    """
    body: Receipt | None = connection.execute(_BODY, {"turn": turn_id}).scalar()
    if body is None:
        return None
    keys = [key for request in _requests(body) for one in request["messages"] for key in pictures_in(one)]
    urls = load_pictures(connection, keys)
    receipt = _with_pictures(body, lambda key: urls[key]) if keys else body
    if "erased_turns" not in receipt:
        prefix = receipt["request"]["messages"][: receipt["prefix_messages"]]
        receipt = receipt | {"prefix_sha256": sha256(as_json(prefix).encode()).hexdigest()}
    return receipt


def _requests(receipt: Receipt) -> list[dict[str, Any]]:
    return [receipt["request"], *receipt.get("earlier_requests", ())]


def _with_pictures(receipt: Receipt, of: Callable[[str], DataUrl]) -> Receipt:
    """Return a receipt with other texts for the pictures of its requests."""

    def message(one: Message) -> Message:
        return with_pictures(one | {"content": text_in(one)}, urls) if (urls := [*map(of, pictures_in(one))]) else one

    request, *earlier = ({**one, "messages": [*map(message, one["messages"])]} for one in _requests(receipt))
    return receipt | {"request": request, "earlier_requests": earlier}


def keep_sent_turns(connection: Connection, conversation_id: int, number: int, runs: Iterable[Run]) -> None:
    """Record that turn ``number`` may contain something of the turns in runs of [first, last]."""
    own = {"conversation": conversation_id, "number": number}
    rows = [own | {"magnitude": (last - first + 1).bit_length(), "first": first, "last": last} for first, last in runs]
    if rows:
        connection.execute(_INSERT, rows)


def keep_leaning(
    connection: Connection,
    conversation_id: int,
    number: int,
    search: Mapping[str, Any] | None,
    history: Mapping[str, Any] | None,
) -> None:
    """Record the turns that the search of turn ``number``, which has no receipt, may depend on."""
    if search_without(search) != search:
        limit = (history or {}).get("max_history_turns")
        keep_sent_turns(connection, conversation_id, number, turns_in({}, number, limit))


def later_turns_with(connection: Connection, conversation_id: int, number: int) -> list[int]:
    """Return the numbers of later turns that may contain something of turn ``number``."""
    rows = connection.execute(_HOLDING, {"conversation": conversation_id, "turn": number}).all()
    return [later for (later,) in rows]
