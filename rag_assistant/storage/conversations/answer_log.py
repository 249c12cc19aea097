"""The text of running answers, committed as it streams. Only what is committed may be shown."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from rag_assistant.errors import AssistantError, StorageFailed
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import answer_parts

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Batch:
    """Pieces of many answers that are committed together; ``error`` is what all of them meet."""

    pieces: list[tuple[int, int, str]] = field(default_factory=list)
    done: bool = False
    error: AssistantError | None = None


class AnswerLog:
    """Appends text to running answers. Many share one commit: who comes while one is under way joins the next."""

    def __init__(self, database: Database) -> None:
        self._write = database.text_writer(answer_parts)
        self._commit_lock = threading.Lock()
        self._batch_lock = threading.Lock()
        self._next = _Batch()

    def append(self, turn_id: int, position: int, text: str) -> None:
        """Commit ``text`` as the characters of an answer from ``position`` on; return when it is committed.

        Raises StorageFailed if it could not be committed.
        """
        with self._batch_lock:
            batch = self._next
            batch.pieces.append((turn_id, position, text))
        with self._commit_lock:
            if not batch.done:
                self._commit_next()
        if batch.error is not None:
            raise batch.error

    def _commit_next(self) -> None:
        """Commit everything that waits; one thread does it for all that wait with it."""
        with self._batch_lock:
            batch, self._next = self._next, _Batch()
        try:
            self._write(batch.pieces)
        except AssistantError as error:
            batch.error = error
        except Exception as error:
            log.exception("The text of answers could not be committed")
            batch.error = StorageFailed("The text of the answer could not be stored; the server's log says why.")
            batch.error.__cause__ = error
        finally:
            batch.done = True
