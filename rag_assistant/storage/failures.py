"""Database errors as StorageFailed, one sentence that says what to do; and room kept for when the disk is full."""

import errno
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from rag_assistant.records.errors import DatabaseUnavailable, StorageDamaged, StorageFailed

log = logging.getLogger(__name__)

# The texts of SQLITE_CORRUPT and SQLITE_NOTADB.
DAMAGED = ("malformed", "not a database")
FULL, SEE_LOG = (
    f"The database could not do this: {reason}. Nothing that was stored is lost."
    for reason in ("the disk is full", "see the server log")
)
# On a small disk, a share of it.
MAX_BYTES, SHARE = 16_000_000, 20
# With less, a small change may still fit into what SQLite has allocated, but no answer would.
MIN_FREE_BYTES = 1_000_000


class Reserve:
    """A file that only takes room. Once it is given up, what adds questions or documents is refused (``check``)."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_kept = False

    def keep(self) -> bool:
        """Take the room, if that leaves some more; return False if the disk is full."""
        disk = shutil.disk_usage(self._file.parent)
        size = min(MAX_BYTES, disk.total // SHARE)
        try:
            if disk.free < MIN_FREE_BYTES:
                self.give_up()
            elif not self._file.exists():
                with self._file.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, 2 * (size + MIN_FREE_BYTES))
                    file.truncate(size)
            self._is_kept = True
        except OSError as error:
            self._file.unlink(missing_ok=True)
            self._is_kept = self._is_kept or error.errno in (errno.ENOSPC, errno.EDQUOT)
        return not self._is_kept or self._file.exists()

    def give_up(self) -> None:
        if self._file.exists():
            log.error(
                "The disk is full. The last %.1f MB were kept for signing in and deleting; questions and uploads are "
                "refused until there is room. Delete documents or empty the trash, or free some space elsewhere.",
                self._file.stat().st_size / 1_000_000,
            )
            self._file.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise StorageFailed while the room is given up; where none is kept, the disk itself refuses."""
        if self._is_kept and not self.keep():
            raise StorageFailed(FULL)


class FailuresNamed(Struct, frozen=True):
    """Turns database errors into StorageFailed, except constraint violations.

    The driver's own exceptions come from SQLite-only functions, such as copying a database.
    """

    driver: Any
    is_sqlite: bool
    reserve: Reserve | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, IntegrityError):
            return
        if isinstance(error, (SQLAlchemyError, self.driver.Error)):
            failure = _storage_failed(error, is_sqlite=self.is_sqlite)
            if self.reserve is not None and str(failure) == FULL:
                self.reserve.give_up()
            raise failure from error


def unreachable(error: DBAPIError) -> DatabaseUnavailable:
    """Return the error for a PostgreSQL that accepts no connection."""
    reason = str(error.orig).partition("\n")[0].removesuffix(".")
    return DatabaseUnavailable(f"PostgreSQL (database_url) cannot be reached: {reason}.")


def _storage_failed(error: Exception, *, is_sqlite: bool) -> StorageFailed:
    # Without a statement, there was no connection; an invalidated one broke off.
    is_away = isinstance(error, OperationalError) and (error.statement is None or error.connection_invalidated)
    if not is_sqlite and isinstance(error, DBAPIError) and is_away:
        return unreachable(error)
    log.error("The database failed: %s", error)
    if "is locked" in str(error):
        return DatabaseUnavailable("Another program keeps the database locked. Nothing that was stored is lost.")
    if any(sign in str(error) for sign in DAMAGED):
        return StorageDamaged(
            "The database file is damaged and may be incomplete. Stop the server, copy the data folder, run "
            "rag-assistant doctor, and restore a backup."
        )
    return StorageFailed(FULL if "full" in str(error) else SEE_LOG)
