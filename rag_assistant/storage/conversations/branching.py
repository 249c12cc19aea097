"""Branches: conversations from a turn of another one on. Turns are copied, so that neither changes the other."""

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, insert, literal, select

from rag_assistant.records import Branch, Question, Turn
from rag_assistant.records.errors import ConversationNotFound, InvalidRequest
from rag_assistant.storage.conversations.conversations import (
    Row,
    insert_conversation,
    load_conversation,
)
from rag_assistant.storage.conversations.counters import recount
from rag_assistant.storage.conversations.turn_rows import load_turn
from rag_assistant.storage.database import Store, set_values
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.ownership import readable
from rag_assistant.storage.tables import (
    answer_versions,
    conversations,
    documents,
    messages,
    pictures,
    receipts,
    sent_elsewhere,
    summaries,
    turns,
)

# What a copied turn doesn't keep: its ids, its key, and a pending confirmation, since one yes is enough.
NOT_COPIED = ("id", "conversation_id", "origin_id", "idempotency_key", "request_hash", "waiting")

# The branches of a conversation that aren't deleted, oldest first: id, title and where each starts.
BRANCHES = (
    select(conversations.c.id, conversations.c.title, conversations.c.branched_from)
    .where(conversations.c.origin_id == bindparam("origin"), conversations.c.deleted_at.is_(None))
    .order_by(conversations.c.id)
)


class BranchStore(Store):
    """Knows the branches of conversations."""

    def turns_branched_at(self, conversation_id: int) -> set[int]:
        """Return the numbers of the turns at which branches start."""
        return {one["branched_from"]["turn"] for one in self._rows(BRANCHES, {"origin": conversation_id})}

    def versions_of(self, conversation_id: int, turn: int) -> list[int]:
        """Return the conversations with versions of an edited question, oldest first. Raises ConversationNotFound."""
        with self._database.read() as connection:
            row: Row | None = load_conversation(connection, conversation_id)
            while row is not None:
                root, origin = row["id"], row["branched_from"] or {}
                before = conversations.c.id == origin.get("conversation_id"), conversations.c.deleted_at.is_(None)
                is_same = origin.get("turn") == turn
                row = connection.execute(select(conversations).where(*before)).mappings().first() if is_same else None
            versions, pending = [], [root]
            while pending:
                versions.append(pending.pop())
                branches = connection.execute(BRANCHES, {"origin": versions[-1]}).all()
                pending += [branch_id for branch_id, _, branched_from in branches if branched_from["turn"] == turn]
        return sorted(versions)

    def etag(self, conversation_id: int) -> str:
        """Return an HTTP entity tag that changes with anything in a conversation.

        Its row is enough: each question and answer moves its counters or ``updated_at``, everything else ``changes``.
        Raises ConversationNotFound.
        """
        with self._database.read() as connection:
            row = load_conversation(connection, conversation_id)
            branches = list(map(tuple, connection.execute(BRANCHES, {"origin": conversation_id})))
        # Whether its answers were seen changes nothing in it.
        state = repr((sorted(({**row} | {"unread": False}).items()), branches))
        return f'"{hashlib.sha256(state.encode()).hexdigest()[:20]}"'

    def origin_of(self, branched_from: dict[str, Any] | None) -> Branch | None:
        """Return a branch's origin; ``None`` if that was deleted, or there is none.

        Also ``None`` where the branch stands in the list for its origin: that is an older version, reached from its
        question.
        """
        if branched_from is None:
            return None
        with self._database.read() as connection:
            try:
                row = load_conversation(connection, branched_from["conversation_id"])
            except ConversationNotFound:
                return None
            return Branch(row["id"], row["title"], branched_from["turn"]) if row["listed"] else None


def branch_for(connection: Connection, question: Question, title: str) -> int:
    """Create an edited question's branch; return its id. Raises TurnNotFound, ConversationNotFound, InvalidRequest."""
    turn = load_turn(connection, question.edits_turn or 0)
    # Locked, so that no turn of it is erased during the copy.
    origin = load_conversation(connection, turn.conversation_id, lock=True)
    if question.conversation_id not in (None, turn.conversation_id):
        raise InvalidRequest(
            f"edits_turn is {turn.id}, which is in conversation {turn.conversation_id} and not in "
            f"{question.conversation_id}."
        )
    listed = question.interactive or (turn.number > 1 and origin["listed"])
    if question.interactive:  # The newest version represents all of them in the list.
        set_values(connection, conversations, origin["id"], {"listed": False})
        title = origin["title"] if turn.number > 1 else title
    branch_id = insert_conversation(connection, title, listed=listed)
    set_values(connection, conversations, branch_id, _taken_along(connection, origin, turn, branch_id))
    _copy_turns(connection, origin["id"], branch_id, turn.number)
    recount(connection, branch_id)
    return branch_id


def _taken_along(connection: Connection, origin: Row, turn: Turn, branch_id: int) -> dict[str, Any]:
    """Return what the branch inherits besides turns; no context start behind the turn, no document that is gone."""
    scope = dict(origin["scope"] or {})
    named = documents.c.id.in_(scope.get("document_ids", ())), readable(connection, documents.c.id)
    scope["document_ids"] = list(connection.scalars(select(documents.c.id).where(*named)))
    last = turn.number - 1
    names = [column.name for column in summaries.c if column.name not in ("id", "conversation_id")]
    own = select(literal(branch_id), *(summaries.c[name] for name in names)).order_by(summaries.c.id)
    rows = own.where(summaries.c.conversation_id == origin["id"], summaries.c.last_turn < turn.number)
    connection.execute(insert(summaries).from_select(["conversation_id", *names], rows))
    return _view_before(connection, {**origin, "id": branch_id}, turn.number) | {
        "branched_from": {"conversation_id": origin["id"], "turn": turn.number},
        "origin_id": origin["id"],
        "overrides": origin["overrides"],
        "scope": scope if any(scope.values()) else None,
        "project_id": origin["project_id"],
        "turns": last,
        "decided_until": min(origin["decided_until"], last),
    }


def _view_before(connection: Connection, row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the view that holds for a turn: after what was cleared before it, with a summary of older turns alone."""
    starts = [one for one in (*row["earlier_starts"], row["context_start"]) if one <= number] or [1]
    reach = summaries.c.first_turn >= starts[-1], summaries.c.last_turn < number
    own = select(summaries.c.id, summaries.c.last_turn).where(summaries.c.conversation_id == row["id"], *reach)
    newest = connection.execute(own.order_by(summaries.c.id.desc()).limit(1)).first()
    summary_id, view_start = (newest.id, newest.last_turn + 1) if newest else (None, starts[-1])
    view = {"context_start": starts[-1], "earlier_starts": starts[:-1]}
    return view | {"view_start": view_start, "summary_id": summary_id}


def _copy_turns(connection: Connection, origin: int, branch_id: int, before: int) -> None:
    """Copy the turns with a number below ``before``, with everything that belongs to them."""
    names = [column.name for column in turns.columns if column.name not in NOT_COPIED]
    chosen = [turns.c[name] for name in names]
    mine = select(literal(branch_id), func.coalesce(turns.c.origin_id, turns.c.id), *chosen)
    own = and_(turns.c.conversation_id == origin, turns.c.number < before)
    connection.execute(insert(turns).from_select(["conversation_id", "origin_id", *names], mine.where(own)))
    old, new = turns.alias("old"), turns.alias("new")
    pairs = (
        select(old.c.id.label("old_id"), new.c.id.label("new_id"))
        .join_from(old, new, old.c.number == new.c.number)
        .where(old.c.conversation_id == origin, new.c.conversation_id == branch_id)
        .subquery("pairs")
    )
    of_turn = (table.c.turn_id for table in (messages, pictures, receipts, answer_versions))
    for owner in (*of_turn, sent_elsewhere.c.receipt_turn_id):
        names = [column.name for column in owner.table.c if column is not owner]
        copied = (owner.table.c[name] for name in names)
        rows = select(pairs.c.new_id, *copied).join(owner.table, owner == pairs.c.old_id)
        connection.execute(insert(owner.table).from_select([owner.name, *names], rows))
    TURN_WORDS.copy(connection, pairs)
