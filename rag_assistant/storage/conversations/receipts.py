"""Receipts: the request bodies of a turn as they were sent, and what was left out of them.

Pictures are stored once and referred to by key, since each is sent again with the turns that follow. Which turns of
other conversations, and notes, it contains is recorded, so that erasing one finds it (erasing.py).
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, select, text, tuple_

from rag_assistant.history.erasing import Receipt
from rag_assistant.records import Correction, DataUrl, Message, Turn, pictures_in, text_in, with_pictures
from rag_assistant.records.errors import TurnErasedMeanwhile
from rag_assistant.storage.conversations.turn_rows import keep_pictures, load_pictures, picture_key
from rag_assistant.storage.database import Store, as_json, insert_rows
from rag_assistant.storage.tables import HIDDEN, history_changes, notes, receipts, sent_elsewhere, summaries, turns

_BODY = select(receipts.c.body).where(receipts.c.turn_id == bindparam("turn"))
_KEEP = text(
    "INSERT INTO receipts (turn_id, body) VALUES (:turn, :body) "
    "ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body"
).bindparams(bindparam("body", type_=receipts.c.body.type))


def keep_receipt(connection: Connection, turn: Turn, receipt: Receipt) -> None:
    """Store a turn's receipt, replacing an earlier one. Raises TurnErasedMeanwhile."""
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
    urls = {url for request in _requests(receipt) for one in request["messages"][-1:] for url in pictures_in(one)}
    keep_pictures(connection, turn.id, urls)
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


class CorrectionStore(Store):
    """Finds turns and summaries behind an answer that have changed since."""

    def of(self, shown: Sequence[Turn]) -> dict[int, list[Correction]]:
        """Return, by turn id, what was excluded, erased or edited after the answers of some turns of one conversation.

        Receipts are read only where something was.
        """
        answered = [turn for turn in shown if turn.history is not None]
        corrections: dict[int, list[Correction]] = {turn.id: [] for turn in answered}
        if not answered:
            return corrections
        summarised = [turn for turn in answered if (turn.history or {}).get("summary_sent")]
        edits = (
            select(history_changes.c.created_at, summaries.c.first_turn)
            .join(summaries, summaries.c.id == history_changes.c.before["summary_id"].as_integer())
            .where(history_changes.c.conversation_id == answered[0].conversation_id)
            .where(history_changes.c.kind == "edit summary")
        )
        with self._database.read() as connection:
            for turn_id, correction in self._hidden_turns(connection, answered):
                corrections[turn_id].append(correction)
            edited = connection.execute(edits).all() if summarised else []
        for turn in summarised:
            if any(first < turn.number and moment > (turn.finished_at or turn.created_at) for moment, first in edited):
                corrections[turn.id].append(Correction("summary", "edited"))
        return corrections

    @staticmethod
    def _hidden_turns(connection: Connection, answered: Sequence[Turn]) -> list[tuple[int, Correction]]:
        """Return excluded or erased turns that an answer could draw on, with the answer's id."""
        earlier = turns.c.number < max(turn.number for turn in answered)
        query = (
            select(turns.c.number, turns.c.excluded)
            .where(turns.c.conversation_id == answered[0].conversation_id, earlier, HIDDEN)
            .where(turns.c.excluded | turns.c.erased_at.is_not(None))
        )
        hidden = connection.execute(query.order_by(turns.c.number)).all()
        if not hidden:
            return []
        ids = [turn.id for turn in answered]
        rows = connection.execute(select(receipts).where(receipts.c.turn_id.in_(ids))).all()
        recalled = {turn.id: (turn.history or {}).get("recalled_turns", []) for turn in answered}
        return [
            (row.turn_id, Correction("turn", "excluded" if excluded else "erased", turn=number))
            for row in rows
            for number, excluded in hidden
            if (
                number in row.body.get("kept_turns", ()) or number in recalled[row.turn_id]
                if excluded
                else number in row.body.get("erased_turns", ())
            )
        ]
