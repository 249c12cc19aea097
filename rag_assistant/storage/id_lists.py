"""Many whole numbers as one value of a statement, so that it is the same statement however many there are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson
from sqlalchemy import ARRAY, BigInteger, ColumnElement, Dialect, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine


class IdList(TypeDecorator[Collection[int]]):
    """Whole numbers: an array for PostgreSQL, JSON for SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return what the database takes."""
        return Text() if dialect.name == "sqlite" else ARRAY(BigInteger)

    def process_bind_param(self, value: Collection[int] | None, dialect: Dialect) -> Any:
        """Return the numbers as the database takes them."""
        numbers = list(value or ())
        return orjson.dumps(numbers).decode() if dialect.name == "sqlite" else numbers


class _Rows(FunctionElement[int]):
    """The numbers of a list as rows."""

    inherit_cache = True


@compiles(_Rows, "sqlite")
def _as_json(rows: _Rows, compiler: Any, **options: Any) -> str:
    return f"(SELECT value FROM json_each({compiler.process(rows.clauses, **options)}))"  # noqa: S608 - a bound value


@compiles(_Rows)
def _as_array(rows: _Rows, compiler: Any, **options: Any) -> str:
    return f"(SELECT unnest({compiler.process(rows.clauses, **options)}))"


def one_of(column: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the numbers that are given under a name."""
    return column.op("IN", is_comparison=True)(_Rows(bindparam(name, type_=IdList())))
