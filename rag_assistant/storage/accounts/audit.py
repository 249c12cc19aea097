"""What was done to accounts, tokens and libraries, by whom. Never what anybody asked, wrote or keeps."""

from __future__ import annotations

from sqlalchemy import insert, select

from rag_assistant.records import AuditEntry
from rag_assistant.storage.database import Store, record_of
from rag_assistant.storage.tables import audit_log, now


class AuditLog(Store):
    """Notes what was done, for good."""

    def note(self, actor: str, action: str, subject: str, address: str | None = None) -> None:
        """Note that somebody did something to something."""
        values = {"at": now(), "actor": actor, "action": action, "subject": subject, "address": address}
        with self._database.write() as connection:
            connection.execute(insert(audit_log).values(values))

    def newest(self, limit: int) -> list[AuditEntry]:
        """Return the last entries, the newest first."""
        query = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings()
            return [record_of(row, AuditEntry) for row in rows]
