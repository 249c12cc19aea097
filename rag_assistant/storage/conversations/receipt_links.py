"""The hash chain of a conversation's receipts.

A receipt joins it when the chain is first read after its answer is complete. Stored here are the salts of its parts,
and the hashes of erased parts.
"""

import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from rag_assistant.history.receipt_chain import hash_of_link, hash_of_part, parts_of
from rag_assistant.storage.conversations.conversations import Row, load_conversation
from rag_assistant.storage.conversations.turn_rows import as_turns
from rag_assistant.storage.conversations.versions import answer_in
from rag_assistant.storage.database import Store
from rag_assistant.storage.tables import answer_versions, now, receipt_links, receipts, turns

LINKS_AT_ONCE = 100
_OF_CONVERSATION = receipt_links.c.conversation_id == bindparam("conversation")
_OF_TURNS = receipt_links.c.turn_id.in_(bindparam("turns", expanding=True))
_LAST = select(receipt_links).where(_OF_CONVERSATION).order_by(receipt_links.c.position.desc()).limit(1)
_KEYS = select(receipt_links.c.turn_id, receipt_links.c.version)
_PAGE = (
    select(receipt_links, turns.c.number)
    .join_from(receipt_links, turns, turns.c.id == receipt_links.c.turn_id)
    .where(_OF_CONVERSATION, receipt_links.c.position > bindparam("position"))
    .order_by(receipt_links.c.position)
    .limit(LINKS_AT_ONCE)
)
# A failed turn may be sent again, with another receipt.
_OVER = (turns.c.conversation_id == bindparam("conversation"), turns.c.status.not_in(("running", "failed", "erased")))
_KEPT = (
    select(turns.c.number, turns.c.version, turns.c.id)
    .join_from(turns, receipts, receipts.c.turn_id == turns.c.id)
    .where(*_OVER)
    .union_all(
        select(turns.c.number, answer_versions.c.version, turns.c.id)
        .join_from(turns, answer_versions, answer_versions.c.turn_id == turns.c.id)
        .where(*_OVER, answer_versions.c.receipt.is_not(None))
    )
)
_TURNS = select(turns).where(turns.c.id.in_(bindparam("turns", expanding=True)))
_BODIES = select(receipts).where(receipts.c.turn_id.in_(bindparam("turns", expanding=True)))
_VERSIONS = select(answer_versions).where(
    answer_versions.c.turn_id.in_(bindparam("turns", expanding=True)), answer_versions.c.receipt.is_not(None)
)

# A turn's id and the number of one of its answers.
Key = tuple[int, int]


class ReceiptChain(Store):
    """Reads the receipts of a conversation as a chain."""

    def links(self, conversation_id: int) -> Iterator[dict[str, Any]]:
        """Yield the receipts of all finished answers, each with the hash of the one before.

        An answer without text has none. Raises ConversationNotFound before the first.
        """
        with self._database.read() as connection:
            load_conversation(connection, conversation_id)
            own = {"conversation": conversation_id}
            linked = set(map(tuple, connection.execute(_KEYS.where(_OF_CONVERSATION), own).all()))
            answers = sorted(connection.execute(_KEPT, own).all())
        missing = [(turn_id, version) for _, version, turn_id in answers if (turn_id, version) not in linked]
        for start in range(0, len(missing), LINKS_AT_ONCE):
            self._append(conversation_id, missing[start : start + LINKS_AT_ONCE])
        return self._pages(conversation_id)

    def _pages(self, conversation_id: int) -> Iterator[dict[str, Any]]:
        position = 0
        while True:
            with self._database.read() as connection:
                params = {"conversation": conversation_id, "position": position}
                rows = connection.execute(_PAGE, params).mappings().all()
                values = _values(connection, {row["turn_id"] for row in rows})
            for row in rows:
                yield _link(row, row["number"], values.get((row["turn_id"], row["version"]), {}))
            if not rows:
                return
            position = rows[-1]["position"]

    def _append(self, conversation_id: int, answers: Collection[Key]) -> None:
        """Append the receipts of some answers to the chain, unless another process has."""
        with self._database.write() as connection:
            load_conversation(connection, conversation_id, lock=True)
            last = connection.execute(_LAST, {"conversation": conversation_id}).mappings().first()
            position, previous = (last["position"], last["hash"]) if last else (0, "")
            turn_ids = {turn_id for turn_id, _ in answers}
            linked = set(map(tuple, connection.execute(_KEYS.where(_OF_TURNS), {"turns": turn_ids}).all()))
            numbers = {row.id: row.number for row in connection.execute(_TURNS, {"turns": turn_ids})}
            values = _values(connection, turn_ids)
            rows = []
            for key in answers:
                if key in linked or not values.get(key, {}).get("answer"):
                    continue
                position += 1
                row = {"conversation_id": conversation_id, "position": position, "turn_id": key[0], "version": key[1]}
                row |= {"previous": previous, "parts": {name: {"salt": secrets.token_hex(16)} for name in values[key]}}
                previous = hash_of_link(_link(row | {"hash": ""}, numbers[key[0]], values[key]))
                rows.append(row | {"hash": previous})
            if rows:
                connection.execute(insert(receipt_links), rows)


@contextmanager
def forgetting(connection: Connection, turn_ids: Collection[int]) -> Iterator[None]:
    """Keep only the hashes of receipt parts that are erased inside this context."""
    rows = connection.execute(select(receipt_links).where(_OF_TURNS), {"turns": turn_ids}).mappings().all()
    linked = {row["turn_id"] for row in rows}
    before = _values(connection, linked)
    yield
    after, erased_at = _values(connection, linked), now().isoformat(timespec="seconds")
    for row in rows:
        key = row["turn_id"], row["version"]
        had, has = before.get(key, {}), after.get(key, {})
        changed = {name: value for name, value in had.items() if name not in has or has[name] != value}
        parts = row["parts"] | {
            name: {"hash": hash_of_part(part | {"value": changed[name]}), "erased_at": erased_at}
            for name, part in row["parts"].items()
            if name in changed and "hash" not in part
        }
        if parts != row["parts"]:
            this = receipt_links.c.turn_id == key[0], receipt_links.c.version == key[1]
            connection.execute(update(receipt_links).where(*this).values(parts=parts))


def _link(row: Row, number: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a link of the chain, with the values of the parts that aren't erased."""
    return {
        "conversation": row["conversation_id"],
        "position": row["position"],
        "turn": number,
        "version": row["version"],
        "previous": row["previous"],
        "parts": {
            name: part if "hash" in part else part | {"value": values.get(name)} for name, part in row["parts"].items()
        },
        "hash": row["hash"],
    }


def _values(connection: Connection, turn_ids: Collection[int]) -> dict[Key, dict[str, Any]]:
    """Return the parts of all receipts of some turns, by turn id and answer number."""
    if not turn_ids:
        return {}
    own = {"turns": turn_ids}
    by_id = {turn.id: turn for turn in as_turns(connection, connection.execute(_TURNS, own).mappings())}
    values = {
        (row.turn_id, by_id[row.turn_id].version): parts_of(row.body, by_id[row.turn_id].answer)
        for row in connection.execute(_BODIES, own)
    }
    for row in connection.execute(_VERSIONS, own):
        values[row.turn_id, row.version] = parts_of(row.receipt, answer_in(row.messages))
    return values
