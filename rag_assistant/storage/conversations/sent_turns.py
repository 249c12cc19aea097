"""Of which earlier turns the requests of a turn may hold something, so that one is erased without reading all later
ones.

Kept as runs of turns, found by their length: a run of 2^(k - 1) to 2^k - 1 turns that holds a turn begins at most
2^k - 2 turns before it. What is kept may name too much, and never too little.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, literal, select, text

from rag_assistant.history.erasing import Run, search_without, turns_in
from rag_assistant.records import MAX_INT32
from rag_assistant.storage.tables import sent_turns

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
