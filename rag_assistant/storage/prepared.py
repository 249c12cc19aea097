"""Statements that run for every question: on SQLite compiled once, and handed to the driver itself.

SQLAlchemy makes objects for each execution, its result and each row, which together cost several times what SQLite
needs for a row or two (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Dialect, Executable, Table, bindparam, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TypeEngine

from rag_assistant.storage.database import as_json, driver_of, from_json

Convert = Callable[[Any], Any]


class _Compiled(Struct, frozen=True):
    """A statement as SQLite takes it, with what is done to the values that are given and to those of a row."""

    sql: str
    known: Mapping[str, Any]
    given: Sequence[tuple[str, Convert]]
    found: Sequence[tuple[int, Convert]]

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run it once, and return the driver's cursor."""
        all_values = {**self.known, **values}
        for name, convert in self.given:
            all_values[name] = convert(all_values[name])
        return driver_of(connection).execute(self.sql, all_values)


def driver_rows(connection: Connection, statement: str, values: Sequence[Any]) -> Iterable[Any]:
    """Run a statement that is written for the driver, and return its rows."""
    if connection.dialect.name == "sqlite":
        rows: Iterable[Any] = driver_of(connection).execute(statement, values)
        return rows
    return connection.exec_driver_sql(statement, tuple(values)).all()


class Prepared:
    """A statement whose values are named. PostgreSQL runs it through SQLAlchemy, as any other.

    What SQLite's driver raises becomes an error of ours at the end of the transaction.
    """

    def __init__(self, statement: Executable) -> None:
        self._statement = statement

    def rows(self, connection: Connection, values: Mapping[str, Any] = {}) -> Sequence[Any]:
        """Run it and return all rows."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).all()
        rows: list[tuple[Any, ...]] = self._compiled.run(connection, values).fetchall()
        found = self._compiled.found
        return [_converted(row, found) for row in rows] if found else rows

    def mappings(self, connection: Connection, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run it and return all rows by the names of their columns."""
        return [dict(zip(self._names, row, strict=True)) for row in self.rows(connection, values)]

    def run(self, connection: Connection, *values: Mapping[str, Any]) -> int:
        """Run it once with each of the ``values``, and return how many rows it made, changed or deleted."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).rowcount
        return sum([self._compiled.run(connection, one).rowcount for one in values])

    @cached_property
    def _names(self) -> Sequence[str]:
        return list(self._statement.exported_columns.keys())  # type: ignore[attr-defined]

    @cached_property
    def _compiled(self) -> _Compiled:
        return _compile(self._statement)


def set_values(connection: Connection, table: Table, row_id: int, values: Mapping[str, Any]) -> None:
    """Give columns of the row of a table that has some id other values."""
    new = {f"new_{name}": value for name, value in values.items()}
    _setting(table, tuple(values)).run(connection, {"row": row_id} | new)


@cache
def _setting(table: Table, names: Sequence[str]) -> Prepared:
    values = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return Prepared(update(table).where(table.c.id == bindparam("row")).values(values))


def _compile(statement: Executable) -> _Compiled:
    dialect = sqlite.dialect(paramstyle="named", json_serializer=as_json, json_deserializer=from_json)
    compiled: Any = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    given = {name: _of(bound.type, dialect).bind_processor(dialect) for bound, name in compiled.bind_names.items()}
    columns = getattr(statement, "exported_columns", ())
    found = [_of(column.type, dialect).result_processor(dialect, None) for column in columns]
    return _Compiled(
        str(compiled),
        compiled.params,
        [(name, convert) for name, convert in given.items() if convert is not None],
        [(place, convert) for place, convert in enumerate(found) if convert is not None],
    )


def _of(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


def _converted(row: tuple[Any, ...], found: Sequence[tuple[int, Convert]]) -> list[Any]:
    values = list(row)
    for place, convert in found:
        values[place] = convert(values[place])
    return values
