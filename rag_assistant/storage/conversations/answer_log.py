"""The text of running answers, committed as it streams. Only what is committed may be shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import bindparam, insert, select

from rag_assistant.records.errors import AnswerTakenOver
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import answer_parts, turns

# Who ends a turn for us locks its row: we wait for that, and look again.
_OURS = (
    select(turns.c.id)
    .where(turns.c.id.in_(bindparam("turns", expanding=True)), turns.c.status == "running")
    .where(turns.c.owner == bindparam("present_owner"))
    .with_for_update(read=True, key_share=True)
)

# A turn, where in its answer the text begins, and the text.
Piece = tuple[int, int, str]


class AnswerLog:
    """Appends text to running answers; that of many in one transaction.

    ``owner`` names this process: what it writes to a turn that another one has ended is refused. ``tell`` is told of
    which turns there is more.
    """

    def __init__(self, database: Database, owner: str, tell: Callable[[set[int]], None] = lambda _: None) -> None:
        self._database = database
        self.owner = owner
        self._tell = tell

    def append(self, turn_id: int, position: int, text: str) -> None:
        """Commit ``text`` as the characters of an answer from ``position`` on.

        Raises StorageFailed if it could not be committed, and AnswerTakenOver if another process has ended the turn.
        """
        if self.append_all([(turn_id, position, text)]):
            raise AnswerTakenOver

    def append_all(self, pieces: Sequence[Piece]) -> set[int]:
        """Commit pieces of many answers, and return the turns that another process has ended: nothing came to those.

        Raises StorageFailed if nothing could be committed.
        """
        turn_ids = {turn_id for turn_id, _, _ in pieces}
        with self._database.write(forced=False) as connection:
            ours = set(connection.execute(_OURS, {"turns": list(turn_ids), "present_owner": self.owner}).scalars())
            rows = [{"turn_id": one[0], "position": one[1], "text": one[2]} for one in pieces if one[0] in ours]
            if rows:
                connection.execute(insert(answer_parts), rows)
        self._tell(turn_ids)
        return turn_ids - ours
