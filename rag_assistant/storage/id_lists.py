"""Many numbers or texts as one value of a statement, so that it is the same statement however many there are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import ARRAY, BigInteger, ColumnElement, Dialect, String, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine


class IdList(TypeDecorator[Collection[Any]]):
    """Whole numbers: an array for PostgreSQL, JSON for SQLite."""

    impl = Text
    cache_ok = True
    kind: type[TypeEngine[Any]] = BigInteger

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return what the database takes."""
        return Text() if dialect.name == "sqlite" else ARRAY(self.kind)

    def process_bind_param(self, value: Collection[Any] | None, dialect: Dialect) -> Any:
        """Return the values as the database takes them."""
        values = list(value or ())
        return msgspec.json.encode(values).decode() if dialect.name == "sqlite" else values


class TextList(IdList):
    """Texts, in the same way."""

    cache_ok = True
    kind = Text


class _Rows(FunctionElement[Any]):
    """The values of a list as rows."""

    inherit_cache = True


@compiles(_Rows, "sqlite")
def _as_json(rows: _Rows, compiler: Any, **options: Any) -> str:
    return f"(SELECT value FROM json_each({compiler.process(rows.clauses, **options)}))"  # noqa: S608 - a bound value


@compiles(_Rows)
def _as_array(rows: _Rows, compiler: Any, **options: Any) -> str:
    return f"(SELECT unnest({compiler.process(rows.clauses, **options)}))"


def one_of(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values that are given under a name."""
    kind = TextList() if isinstance(column.type, String) else IdList()
    return column.op("IN", is_comparison=True)(_Rows(bindparam(name, type_=kind)))
