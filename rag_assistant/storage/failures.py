"""Database errors as StorageFailed, one sentence that says what to do; and room that is kept for a full disk."""

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from rag_assistant.records.errors import DatabaseUnavailable, StorageDamaged, StorageFailed

log = logging.getLogger(__name__)

# On a small disk, a share of it.
MAX_BYTES, SHARE = 16_000_000, 20
# With less, a small change may still fit into what SQLite has allocated, but no answer would.
MIN_FREE_BYTES = 1_000_000
FULL = "The database could not do this: the disk is full. Nothing that was stored is lost."
GIVEN_UP = (
    "The disk is full. The last %.1f MB were kept for signing in and deleting; questions and uploads are refused until "
    "there is room. Delete documents or empty the trash, or free some space elsewhere."
)


class Reserve:
    """A file beside SQLite's that only takes room, for signing in and deleting once the disk is full.

    Once it is given up, what adds questions or documents is refused (``check``).
    """

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
            log.error(GIVEN_UP, self._file.stat().st_size / 1_000_000)
            self._file.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise StorageFailed while the room is given up; where none is kept, the disk itself refuses."""
        if self._is_kept and not self.keep():
            raise StorageFailed(FULL)


# The texts of SQLITE_CORRUPT and SQLITE_NOTADB.
DAMAGED = ("malformed", "not a database")


@contextmanager
def failures_named(driver: Any, is_sqlite: bool, reserve: Reserve | None = None) -> Iterator[None]:
    """Turn database errors into StorageFailed, except constraint violations.

    The driver's own exceptions come from SQLite-only functions, such as copying a database.
    """
    try:
        yield
    except IntegrityError:
        raise
    except (SQLAlchemyError, driver.Error) as error:
        failure = _storage_failed(error, is_sqlite=is_sqlite)
        if reserve is not None and str(failure) == FULL:
            reserve.give_up()
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
    if "full" in str(error):
        return StorageFailed(FULL)
    return StorageFailed("The database could not do this: see the server log. Nothing that was stored is lost.")
