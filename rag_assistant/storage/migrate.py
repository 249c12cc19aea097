"""Bring the database to the present schema. Alembic is loaded only when there is something to do."""

from __future__ import annotations

import logging

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from rag_assistant.errors import StorageFailed
from rag_assistant.settings.package_files import MIGRATIONS
from rag_assistant.storage.database import Database

log = logging.getLogger(__name__)

SCHEMA_REVISION = "0005"  # The newest file below migrations/versions; a test compares them.


def migrate(database: Database) -> bool:
    """Upgrade the schema if it is older, and return True if the database was empty before.

    Raises StorageFailed if the database was written by a newer version than this one.
    """
    before = current_revision(database)
    if before == SCHEMA_REVISION:
        return False
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(str(MIGRATIONS / "alembic.ini"))
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = database.engine
    try:
        command.upgrade(config, SCHEMA_REVISION)
    except CommandError as error:
        raise StorageFailed(
            f"The database has the schema {before}, which this version ({SCHEMA_REVISION}) does not know: it was "
            "written by a newer one. Start the newer version, or restore a backup."
        ) from error
    log.info("Database schema: %s -> %s", before or "empty", SCHEMA_REVISION)
    return before is None


def current_revision(database: Database) -> str | None:
    """Return the schema's revision, ``None`` for an empty database."""
    try:
        with database.engine.connect() as connection:
            found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            return found
    except DBAPIError as error:
        if "alembic_version" in str(error.orig):
            return None
        raise StorageFailed(f"The database at {database.url!r} cannot be opened: {error.orig}.") from error
