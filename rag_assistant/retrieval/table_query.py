"""Query a table: filter its rows, then list, count, add up or compare them. Exact, over all rows. Pure."""

import operator
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.retrieval.tables import Table, cells_of, headings_above, rows_of

# A row with totals.
TOTAL = re.compile(r"\W*(?:(?:grand|sub)[ -]?)?(?:total|sum|summe|gesamt\w*|zwischensumme)\W*", re.IGNORECASE)
UNIT = re.compile(r"^[A-Z]{3}(?=[\s\d])|(?<=[\s\d])[A-Z]{3}$|(?<!\s)\s*[€$£%]\s*")
NUMBER = re.compile(r"[-+]?\d[\d.,'\u2019 ]*")
DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d{1,2}")
SEPARATORS = str.maketrans("", "", "'\u2019 ")
# Longer figures aren't computed; within this precision, those of any number of rows are exact.
MAX_FIGURE_CHARS = 100
EXACT = Context(prec=3 * MAX_FIGURE_CHARS)
MAX_CONDITIONS, MAX_SECONDS = 8, 2
# Up to this many values are written out as a sum.
MAX_SUMMANDS = 12

Operation = Literal["list", "count", "sum", "average", "largest", "smallest"]
Comparison = Literal["=", "!=", "contains", "not contains", ">", ">=", "<", "<="]
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class QueryTooLarge(Exception):
    """A query with more than MAX_CONDITIONS, or that takes longer than MAX_SECONDS of CPU."""


class TableAnswer(Struct, frozen=True):
    """Rows of a table that answer a question, by number from 0, and a sentence that describes them."""

    rows: tuple[int, ...]
    note: str


class Condition(Struct, frozen=True):
    """What a cell of a row must say; ``column`` is the column's name."""

    column: str
    comparison: Comparison
    value: str | int | float


class TableQuery(Struct, frozen=True):
    """A query of one of several tables, numbered from 1; ``table`` 0: none of them has the answer.

    All conditions of ``where`` must hold, or with ``any_of`` one of them. ``column`` is the name of the one that is
    added up or compared.
    """

    table: int
    operation: Operation = "list"
    column: str | None = None
    where: tuple[Condition, ...] = ()
    any_of: bool = False


def parsed(text: str, table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the rows of a table in a text; a list has one column, named by what is above it."""
    if table.is_list:
        head = [": ".join(filter(None, (headings_above(text, table.start)[1], table.title)))]
        return head, [[item] for item in rows_of(text, table)]
    head = cells_of(table.head.split("\n")[0])
    return head, [(cells_of(line) + [""] * len(head))[: len(head)] for line in rows_of(text, table)]


def run(query: TableQuery, text: str, table: Table) -> TableAnswer | None:
    """Return the result of a query of a table in a text; ``None`` if it names no column of it, or finds nothing.

    Raises QueryTooLarge.
    """
    if len(query.where) > MAX_CONDITIONS:
        raise QueryTooLarge
    end = time.thread_time() + MAX_SECONDS
    head, rows = parsed(text, table)
    columns = {name.casefold(): n for n, name in enumerate(head)}
    used = [0 if table.is_list else columns.get(one.column.casefold(), -1) for one in query.where]
    if -1 in used:
        return None
    usable = usable_rows(rows)
    conditions_met, chosen = any if query.any_of else all, list[int]()
    for n in sorted(usable):
        if time.thread_time() > end:
            raise QueryTooLarge
        if conditions_met(_holds(one, rows[n][at]) for one, at in zip(query.where, used, strict=True)):
            chosen.append(n)
    conditions = [f"{head[column]} {one.comparison} {one.value}" for one, column in zip(query.where, used, strict=True)]
    of_rows = described(len(chosen), len(usable), conditions, table.is_list, " or " if query.any_of else " and ")
    column = columns.get((query.column or "").casefold())
    return computed(query.operation, column, head, rows, chosen, of_rows) if chosen else None


def usable_rows(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the numbers of the rows that don't add up others."""
    return frozenset(n for n, row in enumerate(rows) if not any(map(TOTAL.fullmatch, row)))


def described(chosen: int, usable: int, conditions: Collection[str], is_list: bool, join: str = " and ") -> str:
    """Return in a sentence how many rows, or items of a list, meet which conditions."""
    unit = "items" if is_list else "rows"
    return f"{chosen} of {usable} {unit}, where {join.join(conditions)}." if conditions else f"{usable} {unit}."


def computed(
    operation: Operation,
    column: int | None,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    chosen: Sequence[int],
    of_rows: str,
) -> TableAnswer | None:
    """Return the result of an operation on some rows, which ``of_rows`` describes; ``None`` without figures or dates.

    Cells without a figure are left out, or without a date if most have one.
    """
    if operation in ("list", "count"):
        return TableAnswer(tuple(chosen), of_rows)
    if column is None:
        return None
    name, cells = head[column], {n: rows[n][column] for n in chosen}
    figures = {n: value for n, cell in cells.items() if (value := figure(cell)) is not None}
    if any(len(cells[n]) > MAX_FIGURE_CHARS for n in figures):
        return TableAnswer(tuple(chosen), f"The figures of {name} are too long to compute. {of_rows}")
    if operation in ("largest", "smallest"):
        dates = {n: cell for n, cell in cells.items() if DATE.fullmatch(cell)}
        values: Mapping[int, Any] = dates if len(dates) > len(figures) else figures
        if not values:
            return None
        best = (max if operation == "largest" else min)(values.values())
        those = tuple(n for n, value in values.items() if value == best)
        return TableAnswer(those, f"{operation.capitalize()} {name}: {cells[those[0]]}. {of_rows}")
    if not figures:
        return None
    with localcontext(EXACT):
        total = sum(figures.values(), Decimal(0))
        average = round(total / len(figures), 2)
    if operation == "average":
        return TableAnswer(tuple(chosen), f"Average of {name}: {average:,}. {of_rows}")
    parts = f"{' + '.join(map('{:,}'.format, figures.values()))} = " if 1 < len(figures) <= MAX_SUMMANDS else ""
    return TableAnswer(tuple(chosen), f"Sum of {name}: {parts}{total:,}. {of_rows}")


@lru_cache(maxsize=100)
def figure(cell: str) -> Decimal | None:
    """Return a cell's figure, without its unit or currency."""
    number = NUMBER.fullmatch(UNIT.sub("", cell.strip()))
    if number is None or DATE.fullmatch(cell):
        return None
    plain = number[0].translate(SEPARATORS)
    if plain.rfind(",") > plain.rfind(".") >= 0 or DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    try:
        return Decimal(plain.replace(",", ""))
    except InvalidOperation:
        return None


def _holds(condition: Condition, cell: str) -> bool:
    value, comparison = str(condition.value).strip(), condition.comparison
    if order := ORDER.get(comparison):
        limit, own = figure(value), figure(cell)
        if limit is not None and own is not None:
            return order(own, limit)
        return bool(DATE.fullmatch(value) and DATE.fullmatch(cell)) and order(cell, value)
    has, wanted = cell.strip().casefold(), value.casefold()
    if comparison in ("contains", "not contains"):
        return (wanted in has) is (comparison == "contains")
    number = figure(value)
    is_same = has == wanted or (number is not None and number == figure(cell))
    return is_same is (comparison == "=")
