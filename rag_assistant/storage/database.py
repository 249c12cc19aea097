"""The connection to SQLite or PostgreSQL: short transactions, one writer at a time in a process, nothing lost."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from copy import copy as shallow_copy
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec import Struct, convert, to_builtins
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.sql.dml import ReturningInsert

from rag_assistant.records.errors import SettingsError
from rag_assistant.storage.failures import Reserve, failures_named

log = logging.getLogger(__name__)

Record = TypeVar("Record", bound=Struct)

BUSY_TIMEOUT_MS = 20_000
READ_CONNECTIONS = 8
CHECKPOINT_ATTEMPTS = 5
# What synchronous=NORMAL is for SQLite.
UNFORCED = sa.text("SET LOCAL synchronous_commit = off")
# In the info of a database and its connections: the person they work for, and whether they may change documents.
PERSON, CHANGES_DOCUMENTS = "person", "changes_documents"


class Database:
    """Gives short transactions: ``read`` and the durable ``write``, or ``forced=False`` for streamed text.

    SQLite runs in WAL mode. A write starts with BEGIN IMMEDIATE under a lock of this process, so that nothing waits for
    a lock inside a transaction. ``write`` flushes to disk before it returns; without ``forced`` a change survives the
    end of this process at once, and a power cut only after the next forced write. On PostgreSQL at most
    ``max_connections`` are open; callers wait for a free one.
    """

    def __init__(self, url: str, max_connections: int = 3 * READ_CONNECTIONS) -> None:
        self.url = _checked_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._write_lock = threading.Lock()
        self._opened: tuple[int, int] | None = None  # The file that SQLite opened first.
        self.info: dict[str, Any] = {PERSON: None, CHANGES_DOCUMENTS: True}
        if self.is_sqlite:
            self._reader = self._sqlite_engine("FULL", "BEGIN", pool_size=READ_CONNECTIONS)
            self._writer = self._sqlite_engine("FULL", "BEGIN IMMEDIATE", pool_size=1)
            self._text_writer = self._sqlite_engine("NORMAL", "BEGIN IMMEDIATE", pool_size=1)
        else:
            self._reader = self._writer = self._text_writer = sa.create_engine(
                self.url,
                pool_size=min(READ_CONNECTIONS, max_connections),
                max_overflow=max(0, max_connections - READ_CONNECTIONS),
                pool_pre_ping=True,
                hide_parameters=True,
                json_serializer=as_json,
                json_deserializer=from_json,
            )
        self.reserve = Reserve(self.file.with_name("reserve")) if self.is_sqlite else None
        self.dialect = self._reader.dialect
        self._failures_named = partial(failures_named, self.dialect.loaded_dbapi, self.is_sqlite, self.reserve)

    def for_person(self, person_id: int, *, changes_documents: bool = True) -> Database:
        """Return the same database for one person's rows; without ``changes_documents`` no document can be changed."""
        own = shallow_copy(self)
        own.info = {PERSON: person_id, CHANGES_DOCUMENTS: changes_documents}
        return own

    def _works_for(self, connection: sa.Connection) -> sa.Connection:
        connection.info.update(self.info)
        return connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Give a connection with a consistent view of the database."""
        with self._failures_named(), self._reader.begin() as connection:
            yield self._works_for(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Give a connection with a consistent view for long reads; rows are streamed."""
        if self.is_sqlite:
            with self.read() as connection:
                yield connection
            return
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True, "stream_results": True}
        with self._failures_named(), self._reader.connect().execution_options(**options) as connection:
            yield self._works_for(connection)

    @contextmanager
    def write(self, *, forced: bool = True, adds: bool = False) -> Iterator[sa.Connection]:
        """Give a connection whose changes are committed to disk at the end, or rolled back on an exception.

        Without ``forced`` they are as safe as streamed text. What ``adds`` questions or documents is refused on a full
        disk (StorageFailed), also while there is still room to sign in and delete.
        """
        if adds and self.reserve is not None:
            self.reserve.check()
        engine = self._writer if forced else self._text_writer
        alone = self._write_lock if self.is_sqlite else nullcontext()
        with self._failures_named(), alone, engine.begin() as connection:
            if not forced and not self.is_sqlite:
                connection.execute(UNFORCED)
            yield self._works_for(connection)

    @contextmanager
    def one_at_a_time(self, operation: str) -> Iterator[None]:
        """Keep other processes on the same PostgreSQL database from doing the same; on SQLite, file locks do that."""
        if self.is_sqlite:
            yield
            return
        with self._failures_named(), self._writer.begin() as connection:
            lock(connection, operation)
            yield

    @contextmanager
    def outside_transactions(self) -> Iterator[sa.Connection]:
        """Give a PostgreSQL connection in autocommit mode, as building an index requires."""
        with self._failures_named(), self._writer.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def file(self) -> Path:
        """SQLite's file."""
        return Path(self.url.database or "")

    def file_is_ours(self) -> bool:
        """Return whether SQLite's file exists and is the one that was opened first."""
        try:
            status = self.file.stat()
        except FileNotFoundError:
            return False
        return self._opened in (None, (status.st_dev, status.st_ino))

    @property
    def copies(self) -> list[Path]:
        """The copies made before schema upgrades, oldest first; see migrate.py."""
        return sorted(self.file.parent.glob("assistant-schema-*.db")) if self.is_sqlite else []

    def copy_to(self, path: Path) -> None:
        """Copy SQLite's database as it is now to a file, also while it is in use. Raises StorageFailed."""
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with self._failures_named(), closing(self._reader.raw_connection()) as connection:
                with closing(sqlite_module().connect(str(part))) as target:
                    # All pages at once: in steps, it would start over whenever another process writes.
                    driver: Any = connection.driver_connection
                    driver.backup(target)
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def forget_deleted(self) -> None:
        """Remove deleted data from SQLite's log and copies too, so that no file contains it.

        While somebody reads the old state this has to wait: then it is logged, and done when the server stops.
        """
        for copy in self.copies:
            copy.unlink(missing_ok=True)
        if not self.checkpoint():
            log.warning("Erased data stays in the database's log until nobody reads the old state.")

    def checkpoint(self) -> bool:
        """Write SQLite's log into the database file; ``False`` if somebody is still reading an older state."""
        if not self.is_sqlite:
            return True
        with self._failures_named(), closing(self._reader.raw_connection()) as connection:
            driver: Any = connection.driver_connection
            for _ in range(CHECKPOINT_ATTEMPTS):
                driver.execute("PRAGMA busy_timeout=300").close()
                (busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}").close()
                if not busy:
                    return True
        return False

    @property
    def connection_string(self) -> str:
        """The database URL with its password, as PostgreSQL's own tools take it."""
        return self.url.set(drivername=self.url.get_backend_name()).render_as_string(hide_password=False)

    @property
    def engine(self) -> sa.Engine:
        """The engine for migrations."""
        return self._writer

    def close(self) -> None:
        """Close every connection; the last one to close writes SQLite's log into the database file."""
        for engine in {self._reader, self._text_writer, self._writer}:
            engine.dispose()

    def _sqlite_engine(self, synchronous: str, begin: str, pool_size: int) -> sa.Engine:
        engine = sa.create_engine(
            self.url,
            module=sqlite_module(),
            pool_size=pool_size,
            max_overflow=-1,
            hide_parameters=True,
            json_serializer=as_json,
            json_deserializer=from_json,
        )

        @sa.event.listens_for(engine, "connect")
        def prepare(connection: Any, _record: object) -> None:
            connection.isolation_level = None  # The driver starts no transaction by itself; the event below does.
            status = self.file.stat()
            self._opened = self._opened or (status.st_dev, status.st_ino)
            for pragma in (
                "journal_mode=WAL",
                f"synchronous={synchronous}",
                f"busy_timeout={BUSY_TIMEOUT_MS}",
                "foreign_keys=ON",
                "secure_delete=ON",
                "journal_size_limit=67108864",
            ):
                connection.execute(f"PRAGMA {pragma}").close()

        @sa.event.listens_for(engine, "begin")
        def start(connection: sa.Connection) -> None:
            connection.exec_driver_sql(begin)

        return engine


class Store:
    """Base of everything stored in a database. Each method is one short transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _rows(self, query: sa.Select[Any], params: Mapping[str, Any] | None = None) -> Sequence[sa.RowMapping]:
        with self._database.read() as connection:
            return connection.execute(query, params).mappings().all()

    def _records(self, query: sa.Select[Any], kind: type[Record]) -> list[Record]:
        return [record_of(row, kind) for row in self._rows(query)]

    def _values(self, query: sa.Select[Any], params: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the first column of each row."""
        with self._database.read() as connection:
            return list(connection.execute(query, params).scalars())

    def _pairs(self, query: sa.Select[Any, Any], params: Mapping[str, Any] | None = None) -> dict[Any, Any]:
        """Return the second column of each row by the first."""
        with self._database.read() as connection:
            return dict(map(tuple, connection.execute(query, params)))

    def _commit(self, statement: sa.UpdateBase, *, forced: bool = True) -> int:
        """Run one statement in its own transaction, and return the number of changed rows."""
        with self._database.write(forced=forced) as connection:
            return connection.execute(statement).rowcount


def record_of(row: sa.RowMapping | Mapping[str, Any], kind: type[Record]) -> Record:
    """Return a row as a record, whose fields are named like its columns."""
    return convert({str(name): value for name, value in row.items()}, kind)  # Column names may be quoted.


def lock(connection: sa.Connection, operation: str) -> None:
    """Keep others from doing the same until the end of the transaction; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        # A lock of the transaction, so that it also works through a pooler in transaction mode.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"rag_assistant {operation}"))))


def insert_row(connection: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> int:
    """Insert a row and return its id."""
    computed = {name: value for name, value in values.items() if isinstance(value, sa.ColumnElement)}
    inserting = _inserting(table).values(computed) if computed else _inserting(table)
    given = {name: value for name, value in values.items() if name not in computed}
    return int(connection.execute(inserting, given).scalar_one())


@cache
def _inserting(table: sa.Table) -> ReturningInsert[int]:
    return sa.insert(table).returning(table.c.id)


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows into a table, if there are any."""
    if rows:
        connection.execute(sa.insert(table), rows)


def set_values(connection: sa.Connection, table: sa.Table, row_id: int, values: Mapping[str, Any]) -> None:
    """Update columns of the row with this id, if there are any to update."""
    if values:
        connection.execute(sa.update(table).where(table.c.id == row_id).values(values))


def as_json(value: Any) -> str:
    """Return a value for a JSON column: without blanks, and not escaped where possible."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, OverflowError):  # Half a character, such as a cut emoji, or a number beyond 64 bits.
        return json.dumps(value, separators=(",", ":"), default=to_builtins)


def from_json(stored: str | bytes) -> Any:
    """Return the value in a JSON column."""
    try:
        return msgspec.json.decode(stored)
    except ValueError:  # Half a character again.
        return json.loads(stored)


# Conditions are for the person for whom a database or one of its connections works.
Bound: TypeAlias = Database | sa.Connection


def person_of(bound: Bound) -> int | None:
    """Return the person a connection works for; with ``None`` it sees every row."""
    person: int | None = bound.info.get(PERSON)
    return person


def changes_documents(bound: Bound) -> bool:
    """Return whether a connection may change documents at all."""
    return bool(bound.info.get(CHANGES_DOCUMENTS, True))


def _checked_url(url: str) -> sa.URL:
    """Return a database URL. Raises SettingsError, whose message leaves out the URL, which may hold a password."""
    try:
        checked = sa.make_url(url)
        checked.get_dialect().import_dbapi()
    except (ArgumentError, NoSuchModuleError, ImportError):
        raise SettingsError(
            "database_url is not the URL of a database that can be used here; it must look like "
            "postgresql+psycopg://user:password@host/name."
        ) from None
    return checked


def sqlite_url(data_dir: Path) -> str:
    """Return the URL of the default database."""
    return f"sqlite+pysqlite:///{(data_dir / 'assistant.db').resolve()}"


def sqlite_module() -> Any:
    """Prefer a current SQLite: before 3.51.3 two writing processes could damage a database in WAL mode."""
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        from sqlite3 import dbapi2

        if dbapi2.sqlite_version_info < (3, 51, 3):
            log.warning(
                "SQLite %s has a bug that can damage the database when two processes write at once (fixed in 3.51.3). "
                "Stop the server before you use the command line.",
                dbapi2.sqlite_version,
            )
    return dbapi2
