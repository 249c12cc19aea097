"""Prepare a database: refuse unsuitable poolers, and upgrade the schema, for which alone Alembic is loaded."""

import logging
import uuid

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from rag_assistant.records.errors import SettingsError, StorageFailed
from rag_assistant.settings.package_files import MIGRATIONS
from rag_assistant.storage.database import Database
from rag_assistant.storage.failures import unreachable

log = logging.getLogger(__name__)

MAX_COPIES = 2
SCHEMA_REVISION = "0054"  # The newest file in migrations/versions, as a test checks.
FIRST_REVISION = "0037"
UPGRADED_BY = "53deefaf9f34"  # The last commit that can upgrade databases older than the first revision.


def migrate(database: Database) -> bool:
    """Upgrade the schema if it is older, and return True if the database was empty before.

    Of several processes that start on PostgreSQL one upgrades, and the others wait. Raises StorageFailed if the
    database was written by a newer version, or before version 1.0.
    """
    if current_revision(database) == SCHEMA_REVISION:
        return False
    with database.one_at_a_time("migrate"):
        before = current_revision(database)
        if before == SCHEMA_REVISION:
            return False
        if (reason := why_refused(before)) is not None:
            raise StorageFailed(reason)
        if before is not None and database.is_sqlite:
            keep_copy(database, before)
        from alembic import command
        from alembic.config import Config

        config = Config(str(MIGRATIONS / "alembic.ini"))
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["engine"] = database.engine
        command.upgrade(config, SCHEMA_REVISION)
        log.info("Database schema: %s -> %s", before or "empty", SCHEMA_REVISION)
        return before is None


def why_refused(revision: str | None) -> str | None:
    """Return why a database of a revision can't be upgraded, in sentences, or ``None``."""
    if revision is not None and revision < FIRST_REVISION:
        return (
            f"The database has the schema {revision}, from before version 1.0, which starts at {FIRST_REVISION}. Start "
            f"the program once as it was at commit {UPGRADED_BY}: that upgrades the database. Nothing was changed."
        )
    if revision is not None and revision > SCHEMA_REVISION:
        return (
            f"The database has the schema {revision}, which this version ({SCHEMA_REVISION}) does not know: it was "
            "written by a newer one. Start the newer version, or restore a backup or the copy from before the upgrade."
        )
    return None


def keep_copy(database: Database, revision: str) -> None:
    """Copy SQLite's database before its schema changes: the way back. Raises StorageFailed if there is no room."""
    copy = database.file.with_name(f"assistant-schema-{revision}.db")
    try:
        database.copy_to(copy)
    except (StorageFailed, OSError) as error:
        raise StorageFailed(
            f"The database is copied to {copy} before its schema is upgraded, and that failed. It needs "
            f"{database.file.stat().st_size // 1_000_000 + 1} MB there. Nothing was changed."
        ) from error
    for older in [one for one in database.copies if one != copy][: -MAX_COPIES + 1 or None]:
        older.unlink()
    log.warning("The database is being upgraded. A copy of the old one is in %s.", copy)


def current_revision(database: Database) -> str | None:
    """Return the schema's revision, ``None`` for an empty database."""
    try:
        with database.engine.connect() as connection:
            revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            return revision
    except DBAPIError as error:
        if "alembic_version" in str(error.orig):
            return None
        if not database.is_sqlite:
            raise unreachable(error) from error
        raise StorageFailed(f"The database at {database.url!r} cannot be opened: {error.orig}.") from error


FORGETFUL = (
    "database_url leads to a pooler in transaction mode that mixes up prepared statements. Set its mode to session, or "
    "let it know them (PgBouncer 1.21 or newer with max_prepared_statements)."
)


def refuse_forgetful_pooler(database: Database) -> None:
    """Raise SettingsError if prepared statements are lost between transactions; pass if the database is unreachable."""
    if database.is_sqlite:
        return
    import psycopg
    from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName

    token = uuid.uuid4().hex
    statement = psycopg.sql.SQL("SELECT {}").format(token)
    address = database.connection_string
    try:
        with psycopg.connect(address) as one, psycopg.connect(address) as other:
            one.execute(statement, prepare=True)
            one.commit()
            other.execute("SELECT 1")  # In transaction mode it has been given the first one's connection.
            if one.execute(statement, prepare=True).fetchone() != (token,):
                raise SettingsError(FORGETFUL)
    except (DuplicatePreparedStatement, InvalidSqlStatementName) as error:
        raise SettingsError(FORGETFUL) from error
    except psycopg.OperationalError:
        return
