"""What every table is made of, and the one of the processes that share the database."""

import zlib
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Column, DateTime, Index, Integer, LargeBinary, MetaData, String, Table, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import SchemaItem

from rag_assistant.storage.database import as_json, from_json

metadata = MetaData()

# The processes that live; see leases.py. What belongs to one that is not here belongs to nobody.
processes = Table(
    "processes",
    metadata,
    Column("id", String, primary_key=True),
    Column("installation", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("beats", Integer, nullable=False),
    # Those that servers should have in common, as they were at its start.
    Column("settings", JSON, nullable=False),
)


def table_of_ids(name: str, *parts: SchemaItem) -> Table:
    """Return a table whose rows have an ``id`` that is never given twice."""
    return Table(name, metadata, Column("id", Integer, primary_key=True), *parts, sqlite_autoincrement=True)


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index over those rows that fulfil a condition, as a migration makes it.

    SQLAlchemy's own arguments for the condition load the dialects of both databases, whichever is used.
    """
    return Index(name, *columns, unique=unique, info={"where": where})


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC, with its zone, also where the database keeps none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class CompressedJSON(TypeDecorator[Any]):
    """A JSON value that is read whole or not at all, compressed."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        return None if value is None else zlib.compress(as_json(value).encode())

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else from_json(zlib.decompress(value))


def now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)
