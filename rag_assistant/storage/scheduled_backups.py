"""Backups that the server makes by itself, as the command does: at an interval, of which the newest are kept."""

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from rag_assistant.records.errors import AssistantError
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.backup import Kept, write_backup

log = logging.getLogger(__name__)

NAME = re.compile(r"assistant-\d{8}-\d{6}\.zip")
HOUR_SECONDS = 3600
RETRY_SECONDS = 900.0


class BackupStatus(Struct, frozen=True):
    """``state`` is ``off`` without a folder, ``late`` or ``failed``; the age is that of the newest backup, if any."""

    state: str
    newest: Path | None = None
    age_seconds: float | None = None


class ScheduledBackups:
    """Writes backups into ``backup_folder`` and deletes older ones of its own there."""

    def __init__(self, data: Callable[[], Kept], settings: Callable[[], Settings]) -> None:
        self._data = data
        self._settings = settings
        self.last_status = BackupStatus("off")  # For requests, which must not wait for the folder's disk.
        self._has_failed = False
        self._retry_at = 0.0

    def status(self) -> BackupStatus:
        settings = self._settings()
        if settings.backup_folder is None:
            return BackupStatus("off")
        try:
            paths = self._written()
            age = max(0.0, time.time() - paths[-1].stat().st_mtime) if paths else None
        except OSError:  # Its disk may be away; the next attempt says why.
            return BackupStatus("failed")
        if age is None:
            return BackupStatus("failed" if self._has_failed else "late")
        is_late = age > 2 * settings.backup_every_hours * HOUR_SECONDS
        return BackupStatus("failed" if self._has_failed else "late" if is_late else "ready", paths[-1], age)

    def run_if_due(self) -> None:
        """Write a backup if the newest is too old; a failure is logged, and tried again after a quarter of an hour."""
        settings, status = self._settings(), self.status()
        is_fresh = status.age_seconds is not None and status.age_seconds < settings.backup_every_hours * HOUR_SECONDS
        if settings.backup_folder is None or is_fresh or time.monotonic() < self._retry_at:
            return
        folder = Path(settings.backup_folder)
        target = folder / f"assistant-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip"
        try:
            backup = write_backup(self._data(), target, lambda *_: None)
        except (AssistantError, OSError) as error:
            log.error("The backup failed: %s", error)
            self._has_failed, self._retry_at = True, time.monotonic() + RETRY_SECONDS
            return
        self._has_failed = False
        log.info("Backup %s was written: %.1f MB.", target, backup.size_bytes / 1e6)
        for path in (*self._written()[: -settings.backups_kept], *folder.glob("assistant-*.zip.part")):
            path.unlink(missing_ok=True)

    def _written(self) -> list[Path]:
        """Return the backups that were written here, oldest first."""
        folder = Path(self._settings().backup_folder or "")
        return sorted(path for path in folder.glob("assistant-*.zip") if NAME.fullmatch(path.name))
