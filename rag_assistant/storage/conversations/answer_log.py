"""The text of running answers, committed as it streams. Only what is committed may be shown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from itertools import chain

from msgspec import Struct, field
from sqlalchemy import select

from rag_assistant.records.errors import AnswerTakenOver, AssistantError, StorageFailed
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import turns

log = logging.getLogger(__name__)

ROWS_IN_ONE_STATEMENT = 100


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
        # Who ends a turn for us locks its row: we wait for that, and look again.
        self._lock = "" if database.is_sqlite else " FOR KEY SHARE OF turns"
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
        for start in range(0, len(batch.pieces), ROWS_IN_ONE_STATEMENT):
            some = batch.pieces[start : start + ROWS_IN_ONE_STATEMENT]
            if self._database.commit_text(self._statement(len(some)), [*chain(*some), self.owner]) < len(some):
                batch.refused |= self._not_ours({turn_id for turn_id, _, _ in some})

    def _statement(self, count: int) -> str:
        """Return the statement that keeps some pieces; no value stands in it."""
        mark = self._database.parameter_mark
        rows = ", ".join([f"({mark}, {mark}, {mark})"] * count)
        ours = f"turns.status = 'running' AND turns.owner = {mark}{self._lock}"
        return (
            f"WITH new (turn_id, position, text) AS (VALUES {rows}) INSERT INTO answer_parts (turn_id, position, text) "  # noqa: S608
            f"SELECT new.turn_id, new.position, new.text FROM new JOIN turns ON turns.id = new.turn_id WHERE {ours}"
        )

    def _not_ours(self, turn_ids: set[int]) -> set[int]:
        ours = turns.c.id.in_(turn_ids), turns.c.status == "running", turns.c.owner == self.owner
        with self._database.read() as connection:
            return turn_ids - set(connection.execute(select(turns.c.id).where(*ours)).scalars())
