"""Receipts: the bodies of a turn's requests as they were sent, and what was left out of them.

Pictures stand in them by their keys, since each is sent again with the turns that follow.

Beside a receipt stands of which earlier turns the requests of its turn may hold something, so that one is erased
without reading all later ones. Kept as runs of turns, found by their length: a run of 2^(k - 1) to 2^k - 1 turns that
holds a turn begins at most 2^k - 2 turns before it. What is kept may name too much, and never too little.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, literal, select, text

from rag_assistant.history.erasing import Receipt, Run, search_without, turns_in
from rag_assistant.records import MAX_INT32, DataUrl, Message, Turn, pictures_in, text_in, with_pictures
from rag_assistant.storage.conversations.elsewhere import keep_sent_elsewhere
from rag_assistant.storage.conversations.turn_rows import load_pictures, picture_key
from rag_assistant.storage.database import as_json
from rag_assistant.storage.tables import receipts, sent_turns

_BODY = select(receipts.c.body).where(receipts.c.turn_id == bindparam("turn"))
_KEEP = text(
    "INSERT INTO receipts (turn_id, body) VALUES (:turn, :body) "
    "ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body"
).bindparams(bindparam("body", type_=receipts.c.body.type))
_INSERT = text(
    "INSERT INTO sent_turns (conversation_id, magnitude, first_turn, number, last_turn) "
    "VALUES (:conversation, :magnitude, :first, :number, :last) ON CONFLICT DO NOTHING"
)
# With how many turns before it a run of each magnitude that holds a turn may begin.
_REACHES = ", ".join(f"({magnitude}, {(1 << magnitude) - 2})" for magnitude in range(1, MAX_INT32.bit_length() + 1))
_HOLDING = text(
    # SQLite reads what stands before CROSS JOIN first.
    f"WITH magnitudes (magnitude, reach) AS (VALUES {_REACHES}) "  # noqa: S608 - numbers of ours
    "SELECT DISTINCT number FROM magnitudes CROSS JOIN sent_turns "
    "WHERE conversation_id = :conversation AND sent_turns.magnitude = magnitudes.magnitude "
    "AND first_turn BETWEEN :turn - reach AND :turn AND last_turn >= :turn ORDER BY number"
)


def keep_receipt(connection: Connection, turn: Turn, receipt: Receipt) -> None:
    """Keep the receipt of a turn in the place of the one that it has."""
    runs = turns_in(receipt, turn.number, (turn.history or {}).get("max_history_turns"))
    keep_sent_turns(connection, turn.conversation_id, turn.number, runs)
    places = [(one["conversation_id"], one["turn"]) for one in receipt.get("past_turns", ())]
    keep_sent_elsewhere(connection, turn.id, places, receipt.get("notes", ()))
    keep_body(connection, turn.id, _with_pictures(receipt, picture_key))


def keep_body(connection: Connection, turn_id: int, body: Receipt) -> None:
    """Keep a receipt, in which pictures stand by their keys, in the place of the one that a turn has."""
    connection.execute(_KEEP, {"turn": turn_id, "body": body})


def load_receipt(connection: Connection, turn_id: int) -> Receipt | None:
    """Return the receipt of a turn, ``None`` if it has none.

    ``prefix_sha256`` is that of the JSON of the messages before the question: where two requests have the same one, a
    provider can serve these messages from its cache. By a hash, what it was made of can be guessed: once something was
    erased from a receipt, it has none.
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
    """Return a receipt with another text in the place of each picture of its requests."""

    def message(one: Message) -> Message:
        return with_pictures(one | {"content": text_in(one)}, urls) if (urls := [*map(of, pictures_in(one))]) else one

    request, *earlier = ({**one, "messages": [*map(message, one["messages"])]} for one in _requests(receipt))
    return receipt | {"request": request, "earlier_requests": earlier}


def keep_sent_turns(connection: Connection, conversation_id: int, number: int, runs: Iterable[Run]) -> None:
    """Keep that turn ``number`` may hold something of the turns in some runs of [first, last]."""
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
    """Keep on which turns the search of turn ``number`` may lean, which has no receipt."""
    if search_without(search) != search:
        limit = (history or {}).get("max_history_turns")
        keep_sent_turns(connection, conversation_id, number, turns_in({}, number, limit))


def later_turns_with(connection: Connection, conversation_id: int, number: int) -> list[int]:
    """Return the numbers of the later turns that may hold something of turn ``number``."""
    rows = connection.execute(_HOLDING, {"conversation": conversation_id, "turn": number}).all()
    return [later for (later,) in rows]


def copy_sent_turns(connection: Connection, origin: int, branch_id: int, before: int) -> None:
    """Keep for a conversation what is kept for the turns of another one with a number below ``before``."""
    names = [column.name for column in sent_turns.columns if column.name != "conversation_id"]
    own = select(literal(branch_id), *(sent_turns.c[name] for name in names))
    own = own.where(sent_turns.c.conversation_id == origin, sent_turns.c.number < before)
    connection.execute(sent_turns.insert().from_select(["conversation_id", *names], own))
