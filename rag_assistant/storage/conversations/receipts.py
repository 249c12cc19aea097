"""Receipts: kept with references to what is kept anyway, and given back as what was sent, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, bindparam, select, text

from rag_assistant.history.erasing import joined, may_lean_on, receipt_without, search_without, turns_in
from rag_assistant.history.references import Receipt, packed, references_in, unpacked
from rag_assistant.records import Message, PastTurn, Turn
from rag_assistant.storage.conversations.pictures import keys_of_pictures, message_of
from rag_assistant.storage.conversations.sent_turns import keep_sent_turns
from rag_assistant.storage.conversations.turn_rows import load_turn
from rag_assistant.storage.id_lists import one_of
from rag_assistant.storage.sent_texts import (
    OF_BLOCK,
    Block,
    block_of,
    drop_texts,
    keep_texts,
    keys_in,
    load_texts,
    texts_of,
)
from rag_assistant.storage.tables import answer_versions, messages, receipts, turns

_OWN = turns.c.conversation_id == bindparam("conversation")
_VERSIONS = select(turns.c.number, turns.c.version).where(_OWN, turns.c.version > 1)
_SAID = (
    select(turns.c.number, turns.c.version, messages.c.role, messages.c.content, messages.c.extra)
    .join_from(turns, messages, messages.c.turn_id == turns.c.id)
    .where(_OWN, one_of(turns.c.number, "numbers"))
    .order_by(turns.c.number, messages.c.position)
)
_OTHER_VERSION = (
    select(answer_versions.c.messages)
    .join(turns, turns.c.id == answer_versions.c.turn_id)
    .where(_OWN, turns.c.number == bindparam("number"), answer_versions.c.version == bindparam("version"))
)
_BODY = select(receipts.c.body).where(receipts.c.turn_id == bindparam("turn"))
_KEEP = text(
    "INSERT INTO receipts (turn_id, body) VALUES (:turn, :body) "
    "ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body"
).bindparams(bindparam("body", type_=receipts.c.body.type))
_OF_TURNS = (
    select(turns.c.sources, receipts.c.body)
    .join(receipts, receipts.c.turn_id == turns.c.id, isouter=True)
    .where(OF_BLOCK)
)
_OF_VERSIONS = (
    select(answer_versions.c.figures["sources"], answer_versions.c.receipt)
    .join_from(turns, answer_versions, turns.c.id == answer_versions.c.turn_id)
    .where(OF_BLOCK)
)
NUMBERS_AT_ONCE = 500


def keep_receipt(
    connection: Connection,
    turn: Turn,
    receipt: Receipt,
    past: Sequence[PastTurn] = (),
    recalled: Sequence[PastTurn] = (),
) -> None:
    """Keep the receipt of a turn and the texts of its sources, in the place of those that it has."""
    own = {"conversation": turn.conversation_id}
    versions = dict(connection.execute(_VERSIONS, own).all()) if past or recalled else {}
    body, texts, turns_found = packed(receipt, turn, past, recalled, versions)
    keep_texts(connection, block_of_turn(turn), texts | texts_of(turn.sources), turn.sources)
    runs = turns_in(receipt, turn.number, (turn.history or {}).get("max_history_turns"))
    runs = joined([*runs, *((number, number) for number in turns_found)])
    keep_sent_turns(connection, turn.conversation_id, turn.number, runs)
    keep_body(connection, turn.id, body)


def keep_body(connection: Connection, turn_id: int, body: Receipt) -> None:
    """Keep a receipt that is packed, in the place of the one that a turn has."""
    connection.execute(_KEEP, {"turn": turn_id, "body": body})


def load_receipt(connection: Connection, turn_id: int) -> Receipt | None:
    """Return the receipt of a turn as it was when it was kept, ``None`` if it has none. Raises TurnNotFound."""
    body = connection.execute(_BODY, {"turn": turn_id}).scalar()
    turn = load_turn(connection, turn_id)
    return None if body is None else ReceiptReader(connection, turn.conversation_id).unpack(turn, body)


def collect_texts(connection: Connection, block: Block) -> None:
    """Forget the texts of a block to which no receipt, no source and no picture of its turns refers any more."""
    reader = ReceiptReader(connection, block.conversation_id)
    used = keys_of_pictures(connection, block)
    text_of = partial(reader.text, block)
    for query in (_OF_TURNS, _OF_VERSIONS):
        for sources, body in connection.execute(query, block.as_params()):
            used.update(keys_in(sources))
            used.update(key for key in references_in(body, text_of) if isinstance(key, str))
    drop_texts(connection, block, used)


def block_of_turn(turn: Turn) -> Block:
    """Return the block of texts to which a turn belongs."""
    return block_of(turn.conversation_id, turn.number)


class ReceiptReader:
    """Reads receipts of one conversation, and each thing that they refer to once."""

    def __init__(self, connection: Connection, conversation_id: int) -> None:
        self._connection = connection
        self._conversation_id = conversation_id
        self._texts: dict[str, str] = {}
        self._said: dict[tuple[int, int], Sequence[Message]] = {}

    def unpack(self, turn: Turn, body: Receipt) -> Receipt:
        """Return a receipt of a turn as it was before it was packed; the answer of the turn is the one it is about."""
        return self._unpack(turn, body, self.past_turns(turn, body))

    def _unpack(self, turn: Turn, body: Receipt, past: Sequence[PastTurn]) -> Receipt:
        known = {one.number: one.messages for one in past}
        own = [{"role": "user", "content": turn.question}, *turn.iterations]
        text_of = partial(self.text, block_of_turn(turn))
        return unpacked(body, turn.search, lambda number: own if number == turn.number else known[number], text_of)

    def past_turns(self, turn: Turn, body: Receipt) -> list[PastTurn]:
        """Return the earlier turns to which a receipt of a turn refers, with the answers that they had then."""
        versions = self._versions_in(turn, body)
        self._read([number for number, version in versions.items() if (number, version) not in self._said])
        return [PastTurn(number, tuple(self._said_in(number, version))) for number, version in versions.items()]

    def read_ahead(self, kept: Iterable[tuple[Turn, Receipt | None]]) -> None:
        """Read at once the turns to which the receipts of some turns refer."""
        self._read(sorted({number for turn, body in kept if body for number in self._versions_in(turn, body)}))

    def without(self, number: int, turn: Turn, body: Receipt | None) -> tuple[dict[str, Any] | None, Receipt | None]:
        """Return how the documents were searched for a later turn, and its receipt, without turn ``number``."""
        past = [] if body is None else self.past_turns(turn, body)
        whole = {} if body is None else self._unpack(turn, body, past)
        limit = (turn.history or {}).get("max_history_turns")
        leans = may_lean_on(number, whole.get("kept_turns", ()), limit)
        search = search_without(turn.search) if leans else turn.search
        if body is None:
            return search, None
        left = receipt_without(whole, number, limit)
        others = [one for one in past if one.number != number]
        if left is whole and others == past:
            return search, body
        versions = {int(one): version for one, version in body.get("versions", {}).items()}
        packed_again, texts, _ = packed(left, replace(turn, search=search), others, others, versions)
        keep_texts(self._connection, block_of_turn(turn), texts)
        return search, packed_again

    def text(self, block: Block, key: str) -> str:
        """Return a text that the turns of a block share; it is the same in every block."""
        if key not in self._texts:
            self._texts |= load_texts(self._connection, block, [key])
        return self._texts[key]

    def _versions_in(self, turn: Turn, body: Receipt) -> dict[int, int]:
        """Return the numbers of the earlier turns to which a receipt refers, each with the version of its answer."""
        found = references_in(body, partial(self.text, block_of_turn(turn)))
        numbers = sorted({one for one in found if isinstance(one, int)} - {turn.number})
        return {number: body.get("versions", {}).get(str(number), 1) for number in numbers}

    def _said_in(self, number: int, version: int) -> Sequence[Message]:
        if (number, version) not in self._said:
            this = {"conversation": self._conversation_id, "number": number, "version": version}
            question = next(said[0] for (one, _), said in self._said.items() if one == number)
            self._said[number, version] = [question, *self._connection.execute(_OTHER_VERSION, this).scalar_one()]
        return self._said[number, version]

    def _read(self, numbers: Sequence[int]) -> None:
        """Read what was said in some turns, with the answers that they have now."""
        for start in range(0, len(numbers), NUMBERS_AT_ONCE):
            some = {"conversation": self._conversation_id, "numbers": numbers[start : start + NUMBERS_AT_ONCE]}
            found: dict[tuple[int, int], list[Message]] = {}
            for number, version, role, content, extra in self._connection.execute(_SAID, some):
                picture_of = partial(self.text, block_of(self._conversation_id, number))
                found.setdefault((number, version), []).append(message_of(role, content, extra, picture_of))
            self._said |= found
