"""Database errors as StorageFailed: one sentence that says what to do."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from rag_assistant.records.errors import DatabaseUnavailable, StorageDamaged, StorageFailed
from rag_assistant.storage.reserve import FULL, Reserve

log = logging.getLogger(__name__)

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
    reason = "the disk is full" if "full" in str(error) else "see the server log"
    return StorageFailed(f"The database could not do this: {reason}. Nothing that was stored is lost.")
