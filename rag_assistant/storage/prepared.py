"""Statements that run for every question: on SQLite compiled once, and handed to the driver itself.

SQLAlchemy makes objects for each execution, its result and each row, which together cost several times what SQLite
needs for a row or two (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.types import TypeEngine

Convert = Callable[[Any], Any]


class _Compiled(Struct, frozen=True):
    """A statement as SQLite takes it: its values in their order, and what is done to these and to those of a row."""

    sql: str
    names: Sequence[str]
    known: Mapping[str, Any]
    given: Mapping[str, Convert]
    found: Sequence[tuple[int, Convert]]


class Prepared:
    """A statement whose values are named. PostgreSQL runs it through SQLAlchemy, as any other.

    What SQLite's driver raises becomes an error of ours at the end of the transaction.
    """

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: _Compiled | None = None

    def rows(self, connection: Connection, values: Mapping[str, Any] = {}) -> Sequence[Any]:
        """Run it and return all rows."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).all()
        rows: list[tuple[Any, ...]] = self._run_in_sqlite(connection, values).fetchall()
        found = self._ready(connection.dialect).found
        return [_converted(row, found) for row in rows] if found else rows

    def mappings(self, connection: Connection, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run it and return all rows by the names of their columns."""
        return [dict(zip(self._names, row, strict=True)) for row in self.rows(connection, values)]

    def run(self, connection: Connection, *values: Mapping[str, Any]) -> int:
        """Run it once with each of the ``values``, and return how many rows it made, changed or deleted."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).rowcount
        return sum(self._run_in_sqlite(connection, one).rowcount for one in values)

    @cached_property
    def _names(self) -> Sequence[str]:
        return list(self._statement.exported_columns.keys())  # type: ignore[attr-defined]

    def _run_in_sqlite(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        ready = self._ready(connection.dialect)
        all_values = {**ready.known, **values}
        for name, convert in ready.given.items():
            all_values[name] = convert(all_values[name])
        driver: Any = connection.connection.driver_connection
        return driver.execute(ready.sql, [all_values[name] for name in ready.names])

    def _ready(self, dialect: Dialect) -> _Compiled:
        if self._compiled is None:
            self._compiled = _compile(self._statement, dialect)
        return self._compiled


def _compile(statement: Executable, dialect: Dialect) -> _Compiled:
    compiled: Any = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    names = compiled.positiontup or ()
    given = {name: _of(compiled.binds[name].type, dialect).bind_processor(dialect) for name in names}
    columns = getattr(statement, "exported_columns", ())
    found = [_of(column.type, dialect).result_processor(dialect, None) for column in columns]
    return _Compiled(
        str(compiled),
        names,
        compiled.params,
        {name: convert for name, convert in given.items() if convert is not None},
        [(place, convert) for place, convert in enumerate(found) if convert is not None],
    )


def _of(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


def _converted(row: tuple[Any, ...], found: Sequence[tuple[int, Convert]]) -> list[Any]:
    values = list(row)
    for place, convert in found:
        values[place] = convert(values[place])
    return values
