"""Sources of documents: which process scans one, and the last result."""

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
    """Stores the state of each source."""

    def keep_only(self, addresses: Sequence[str]) -> None:
        """Delete the state of former sources."""
        self._commit(delete(document_sources).where(document_sources.c.address.not_in(addresses)))

    def claim(self, address: str, interval_seconds: float) -> bool:
        """Claim a source that is due; return False if it isn't, or another process has claimed it."""
        moment = now()
        due = {"address": address, "moment": moment, "before": moment - timedelta(seconds=interval_seconds)}
        with self._database.write() as connection:
            return bool(connection.execute(_CLAIM, due).rowcount)

    def release(self, address: str) -> None:
        """Make a source due again at once, since its scan was cut short."""
        self._commit(update(document_sources).where(document_sources.c.address == address).values(claimed_at=None))

    def note(self, address: str, *, files: int | None = None, refused: int = 0, problem: str | None = None) -> None:
        """Record the result of a scan; unknown ``files`` leave the number unchanged."""
        counts = {} if files is None else {"files": files, "refused": refused}
        noted = update(document_sources).where(document_sources.c.address == address)
        self._commit(noted.values(checked_at=now(), problem=problem, **counts))

    def all(self) -> list[SourceState]:
        return self._records(select(document_sources).order_by(document_sources.c.address), SourceState)
