"""Backups that the server makes by itself, as the command does: at an interval, of which the newest are kept."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from rag_assistant.records.errors import AssistantError, BackupFailed
from rag_assistant.runtime.data_dir import working_folder
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.backup import Kept, write_backup

if TYPE_CHECKING:
    from rag_assistant.files.s3 import S3Files

log = logging.getLogger(__name__)

NAME = re.compile(r"assistant-\d{8}-\d{6}\.zip")
S3 = "s3://"
HOUR_SECONDS = 3600
RETRY_SECONDS = 900.0


class BackupStatus(Struct, frozen=True):
    """``state`` is ``off`` without a folder, ``late`` or ``failed``; the age is that of the newest backup, if any."""

    state: str
    newest: str | None = None
    age_seconds: float | None = None


class ScheduledBackups:
    """Writes backups into ``backup_folder`` or a bucket, and deletes older ones of its own there."""

    def __init__(
        self, data: Callable[[], Kept], settings: Callable[[], Settings], open_bucket: Callable[[str], S3Files]
    ) -> None:
        self._data = data
        self._settings = settings
        self._bucket = lru_cache(1)(open_bucket)
        self.last_status = BackupStatus("off")  # For requests, which must not wait for the folder's disk.
        self._has_failed = False
        self._retry_at = 0.0

    def status(self) -> BackupStatus:
        settings = self._settings()
        if settings.backup_folder is None:
            return BackupStatus("off")
        try:
            written = self._written(settings.backup_folder)
        except (AssistantError, OSError):  # Its disk or bucket may be away; the next attempt says why.
            return BackupStatus("failed")
        if not written:
            return BackupStatus("failed" if self._has_failed else "late")
        name, written_at = written[-1]
        age = max(0.0, time.time() - written_at)
        is_late = age > 2 * settings.backup_every_hours * HOUR_SECONDS
        state = "failed" if self._has_failed else "late" if is_late else "ready"
        return BackupStatus(state, f"{settings.backup_folder.rstrip('/')}/{name}", age)

    def run_if_due(self) -> None:
        """Write a backup if the newest is too old; a failure is logged, and tried again after a quarter of an hour."""
        settings, status = self._settings(), self.status()
        is_fresh = status.age_seconds is not None and status.age_seconds < settings.backup_every_hours * HOUR_SECONDS
        if settings.backup_folder is None or is_fresh or time.monotonic() < self._retry_at:
            return
        try:
            self._write(settings.backup_folder, settings.backups_kept)
        except (AssistantError, OSError) as error:
            log.error("The backup failed: %s", error)
            self._has_failed, self._retry_at = True, time.monotonic() + RETRY_SECONDS
            return
        self._has_failed = False

    def _write(self, where: str, count: int) -> None:
        """Write a backup, and delete all but this count of the newest."""
        name, data = f"assistant-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip", self._data()
        if where.startswith(S3):
            with working_folder(data.data_dir, "backup-") as folder:
                backup = write_backup(data, folder / name, lambda *_: None)
                self._bucket(where).keep(folder / name, name)
        else:
            for part in Path(where).glob("assistant-*.zip.part"):
                part.unlink(missing_ok=True)  # One that was killed left it.
            backup = write_backup(data, Path(where, name), lambda *_: None)
        log.info("Backup %s/%s was written: %.1f MB.", where.rstrip("/"), name, backup.size_bytes / 1e6)
        for old, _ in self._written(where)[:-count]:
            if where.startswith(S3):
                self._bucket(where).drop(old)
            else:
                Path(where, old).unlink(missing_ok=True)

    def _written(self, where: str) -> list[tuple[str, float]]:
        """Return the names of the backups that were written there, and when, oldest first."""
        if where.startswith(S3):
            files = [(file.name, file.stored_at) for file, _ in self._bucket(where).objects()]
        else:
            files = [(path.name, path.stat().st_mtime) for path in Path(where).glob("assistant-*.zip")]
        return sorted(one for one in files if NAME.fullmatch(one[0]))

    @contextmanager
    def local(self, address: str) -> Iterator[Path]:
        """Give the path of a backup, which is downloaded from S3. Raises BackupFailed if it is not there."""
        if not address.startswith(S3):
            yield Path(address)
            return
        where, _, name = address.rpartition("/")
        try:
            with self._bucket(where).local(name, "") as path:
                yield path
        except FileNotFoundError as error:
            raise BackupFailed(f"There is no backup at {address}.") from error
