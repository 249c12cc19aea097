"""What a server looks at each minute: what is due by age, free disk space, and whether a backup is due."""

import logging

from rag_assistant.conversations.retention import Retention
from rag_assistant.records.errors import StorageFailed
from rag_assistant.runtime.data_dir import Disk
from rag_assistant.runtime.job_queue import Heartbeat
from rag_assistant.storage.leases import Leases
from rag_assistant.storage.scheduled_backups import ScheduledBackups

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0


class Upkeep(Heartbeat):
    """Looks after what is stored; without ``retention``, another process does what is due by age."""

    def __init__(self, disk: Disk, backups: ScheduledBackups, leases: Leases, retention: Retention | None) -> None:
        super().__init__(self.look, INTERVAL_SECONDS)
        self._disk = disk
        self._backups = backups
        self._leases = leases
        self._retention = retention

    def look(self) -> None:
        """Do what is due."""
        if self._retention is not None:
            self._retention.look()
        try:
            self._disk.watch()
            if self._leases.is_first_worker:
                self._backups.run_if_due()
            self._backups.last_status = self._backups.status()
        except (StorageFailed, OSError) as error:
            log.error("The disk, or whether a backup is due, could not be looked at: %s", error)
