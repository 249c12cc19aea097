"""What the tables are built with, and the table of the processes that share the database."""

import zlib
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import SchemaItem

from rag_assistant.storage.database import as_json, from_json

metadata = MetaData()


def table_of_ids(name: str, *parts: SchemaItem) -> Table:
    """Return a table whose rows have an ``id`` that is never reused."""
    return keyed_table(name, Column("id", Integer, primary_key=True), *parts, sqlite_autoincrement=True)


def keyed_table(name: str, *parts: SchemaItem, **options: Any) -> Table:
    """Return a table whose rows are known by other columns."""
    return Table(name, metadata, *parts, **options)


# The live processes; see processes.py. Claims of a process that isn't here are void.
processes = keyed_table(
    "processes",
    Column("id", String, primary_key=True),
    Column("installation", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("beats", Integer, nullable=False),
    # The settings that servers must share, as they were at its start.
    Column("settings", JSON, nullable=False),
)


def shares_table(name: str, item_id: str, items: str) -> Table:
    """Return the table of what people may do with items of somebody else's."""
    return keyed_table(
        name,
        Column(item_id, Integer, ForeignKey(f"{items}.id", ondelete="CASCADE"), primary_key=True),
        Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        Column("access", String, nullable=False),
        Index(f"ix_{name}_person", "person_id"),
    )


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index over the rows that meet a condition, as a migration creates it.

    SQLAlchemy's own arguments for the condition load the dialects of both databases, whichever is used.
    """
    return Index(name, *columns, unique=unique, info={"where": where})


class UtcTime(TypeDecorator[datetime]):
    """A time in UTC, with its time zone even if the database stores none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class CompressedJSON(TypeDecorator[Any]):
    """A compressed JSON value, always read as a whole."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        return None if value is None else zlib.compress(as_json(value).encode())

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else from_json(zlib.decompress(value))


def now() -> datetime:
    return datetime.now(UTC)
