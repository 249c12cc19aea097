"""Sources of documents: who looks through one, and what came of it last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import SourceState
from rag_assistant.storage.database import Store
from rag_assistant.storage.tables import document_sources, now


class SourceStore(Store):
    """Keeps the state of each source."""

    def keep_only(self, addresses: Sequence[str]) -> None:
        """Forget the state of what is no source any more."""
        with self._database.write() as connection:
            connection.execute(delete(document_sources).where(document_sources.c.address.not_in(addresses)))

    def claim(self, address: str, interval_seconds: float) -> bool:
        """Tell whether a source is due; then nobody else looks through it before the interval is over again."""
        own = document_sources.c.address == address
        try:
            with self._database.write() as connection:
                moment = now()
                due = document_sources.c.claimed_at <= moment - timedelta(seconds=interval_seconds)
                never = document_sources.c.claimed_at.is_(None)
                claimed = connection.execute(
                    update(document_sources).where(own, or_(never, due)).values(claimed_at=moment)
                )
                if claimed.rowcount:
                    return True
                if connection.execute(select(document_sources.c.address).where(own)).first() is not None:
                    return False
                connection.execute(insert(document_sources).values(address=address, claimed_at=moment))
                return True
        except IntegrityError:  # Somebody else was first.
            return False

    def release(self, address: str) -> None:
        """Let a source be due again at once, since looking through it was cut short."""
        with self._database.write() as connection:
            own = document_sources.c.address == address
            connection.execute(update(document_sources).where(own).values(claimed_at=None))

    def note(self, address: str, *, files: int | None = None, refused: int = 0, problem: str | None = None) -> None:
        """Note what came of looking through a source; ``files`` stay as they were where that is not known."""
        values = {"checked_at": now(), "problem": problem} | (
            {} if files is None else {"files": files, "refused": refused}
        )
        with self._database.write() as connection:
            own = document_sources.c.address == address
            connection.execute(update(document_sources).where(own).values(values))

    def all(self) -> list[SourceState]:
        """Return the state of every source."""
        columns = document_sources.c
        query = select(columns.address, columns.checked_at, columns.files, columns.refused, columns.problem)
        with self._database.read() as connection:
            return [SourceState(**row) for row in connection.execute(query.order_by(columns.address)).mappings()]
