"""The text of running answers, committed as it streams. Only what is committed may be shown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial

from msgspec import Struct, field
from sqlalchemy import bindparam, insert, select

from rag_assistant.records.errors import AnswerTakenOver, AssistantError, StorageFailed
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import answer_parts, turns

log = logging.getLogger(__name__)

# Who ends a turn for us locks its row: we wait for that, and look again.
_OURS = (
    select(turns.c.id)
    .where(turns.c.id.in_(bindparam("turns", expanding=True)), turns.c.status == "running")
    .where(turns.c.owner == bindparam("present_owner"))
    .with_for_update(read=True, key_share=True)
)

Piece = tuple[int, int, str]


class _Batch(Struct):
    """Pieces of many answers that are committed together.

    ``error`` is what all of them meet; the turns in ``refused`` are not ours any more.
    """

    pieces: list[Piece] = field(default_factory=list)
    done: bool = False
    error: AssistantError | None = None
    refused: set[int] = field(default_factory=set)


class AnswerLog:
    """Appends text to running answers. Many share one commit: who comes while one is under way joins the next.

    ``owner`` names this process: what it writes to a turn that another one has ended is refused. ``tell`` is told of
    which turns there is more.
    """

    def __init__(self, database: Database, owner: str, tell: Callable[[set[int]], None] = lambda _: None) -> None:
        self._database = database
        self.owner = owner
        self._tell = tell
        self._commit_lock = threading.Lock()
        self._batch_lock = threading.Lock()
        self._next = _Batch()

    def append(self, turn_id: int, position: int, text: str) -> None:
        """Commit ``text`` as the characters of an answer from ``position`` on; return when it is committed.

        Raises StorageFailed if it could not be committed, and AnswerTakenOver if another process has ended the turn.
        """
        self.add(turn_id, position, text)()

    def add(self, turn_id: int, position: int, text: str) -> Callable[[], None]:
        """Put text into the next commit, and return what commits that; see ``append``."""
        with self._batch_lock:
            batch = self._next
            batch.pieces.append((turn_id, position, text))
        return partial(self._commit, batch, turn_id)

    def _commit(self, batch: _Batch, turn_id: int) -> None:
        if not batch.done:
            with self._commit_lock:
                if not batch.done:
                    self._commit_next()
        if batch.error is not None:
            raise batch.error
        if turn_id in batch.refused:
            raise AnswerTakenOver

    def _commit_next(self) -> None:
        """Commit everything that waits; one thread does it for all that wait with it."""
        with self._batch_lock:
            batch, self._next = self._next, _Batch()
        try:
            self._write(batch)
            self._tell({turn_id for turn_id, _, _ in batch.pieces})
        except AssistantError as error:
            batch.error = error
        except Exception as error:
            log.exception("The text of answers could not be committed")
            batch.error = StorageFailed("The text of the answer could not be stored; the server's log says why.")
            batch.error.__cause__ = error
        finally:
            batch.done = True

    def _write(self, batch: _Batch) -> None:
        with self._database.write(forced=False) as connection:
            turn_ids = {turn_id for turn_id, _, _ in batch.pieces}
            ours = set(connection.execute(_OURS, {"turns": list(turn_ids), "present_owner": self.owner}).scalars())
            batch.refused = turn_ids - ours
            rows = [{"turn_id": one[0], "position": one[1], "text": one[2]} for one in batch.pieces if one[0] in ours]
            if rows:
                connection.execute(insert(answer_parts), rows)
