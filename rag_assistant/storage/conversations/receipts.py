"""Receipts: the bodies of a turn's requests as they were sent, and what was left out of them.

Pictures stand in them by their keys, since each is sent again with the turns that follow.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, select, text

from rag_assistant.history.erasing import Receipt, turns_in
from rag_assistant.records import DataUrl, Message, Turn, pictures_in, text_in, with_pictures
from rag_assistant.storage.conversations.sent_turns import keep_sent_turns
from rag_assistant.storage.conversations.turn_rows import load_pictures, picture_key
from rag_assistant.storage.database import as_json
from rag_assistant.storage.tables import receipts

_BODY = select(receipts.c.body).where(receipts.c.turn_id == bindparam("turn"))
_KEEP = text(
    "INSERT INTO receipts (turn_id, body) VALUES (:turn, :body) "
    "ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body"
).bindparams(bindparam("body", type_=receipts.c.body.type))


def keep_receipt(connection: Connection, turn: Turn, receipt: Receipt) -> None:
    """Keep the receipt of a turn in the place of the one that it has."""
    runs = turns_in(receipt, turn.number, (turn.history or {}).get("max_history_turns"))
    keep_sent_turns(connection, turn.conversation_id, turn.number, runs)
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
