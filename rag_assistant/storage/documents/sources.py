"""Sources of documents: who looks through one, and what came of it last."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import bindparam, delete, select, text, update

from rag_assistant.records import SourceState
from rag_assistant.storage.database import Store
from rag_assistant.storage.tables import UtcTime, document_sources, now

_CLAIM = text(
    "INSERT INTO document_sources (address, claimed_at) VALUES (:address, :moment) ON CONFLICT (address) DO UPDATE "
    "SET claimed_at = :moment "
    "WHERE document_sources.claimed_at IS NULL OR document_sources.claimed_at <= :before"
).bindparams(bindparam("moment", type_=UtcTime), bindparam("before", type_=UtcTime))


class SourceStore(Store):
    """Keeps the state of each source."""

    def keep_only(self, addresses: Sequence[str]) -> None:
        """Forget the state of what is no source any more."""
        self._commit(delete(document_sources).where(document_sources.c.address.not_in(addresses)))

    def claim(self, address: str, interval_seconds: float) -> bool:
        """Tell whether a source is due; then nobody else looks through it before the interval is over again."""
        moment = now()
        due = {"address": address, "moment": moment, "before": moment - timedelta(seconds=interval_seconds)}
        with self._database.write() as connection:
            return bool(connection.execute(_CLAIM, due).rowcount)

    def release(self, address: str) -> None:
        """Let a source be due again at once, since looking through it was cut short."""
        self._commit(update(document_sources).where(document_sources.c.address == address).values(claimed_at=None))

    def note(self, address: str, *, files: int | None = None, refused: int = 0, problem: str | None = None) -> None:
        """Note what came of looking through a source; ``files`` stay as they were where that is not known."""
        counts = {} if files is None else {"files": files, "refused": refused}
        noted = update(document_sources).where(document_sources.c.address == address)
        self._commit(noted.values(checked_at=now(), problem=problem, **counts))

    def all(self) -> list[SourceState]:
        return self._records(select(document_sources).order_by(document_sources.c.address), SourceState)
