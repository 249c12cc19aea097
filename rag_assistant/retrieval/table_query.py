"""Query a table: filter its rows, then list, count, add up or compare them. Exact, over all rows. Pure."""

import operator
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

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
YEAR = re.compile(r"(?:18|19|20)\d\d")
GERMAN_DATE = re.compile(r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})")
MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True)) | {
    "mär": 3,
    "mai": 5,
    "okt": 10,
    "dez": 12,
}
MONTH = (
    r"(?:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz?|apr(?:il)?|ma[yi]|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\b"
)
DAY = r"(?P<day>\d{1,2})(?:\.|st|nd|rd|th)?"
WRITTEN_DATES = [
    re.compile(rf"(?:{DAY} )?(?P<month>{MONTH})\.?,? (?P<year>\d{{4}})", re.IGNORECASE),
    re.compile(rf"(?P<month>{MONTH})\.? {DAY},? (?P<year>\d{{4}})", re.IGNORECASE),
]
MONEY = re.compile(
    r"price|amount|cost|total|fee|charge|salary|wage|revenue|budget|compensation|rent|net|gross|vat|"
    r"preis|betrag|kosten|gehalt|gebühr|umsatz|miete|lohn|[€$£]",
    re.IGNORECASE,
)
# Figures like 1.500: of money, or beside 12,50, that is 1,500.
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+")
# Up to this many values are written out as a sum.
MAX_SUMMANDS = 12
MAX_VALUES_SAID = 30

Operation = Literal["list", "count", "sum", "average", "largest", "smallest", "values"]
Comparison = Literal["=", "!=", "contains", "not contains", ">", ">=", "<", "<="]
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
DENIED: dict[str, Comparison] = {"!=": "=", "not contains": "contains"}
SAID = {"=": "is", "!=": "is not", "not contains": "does not contain"}


class QueryTooLarge(Exception):
    """A query with more than MAX_CONDITIONS, or that takes longer than MAX_SECONDS of CPU."""


class TableAnswer(Struct, frozen=True):
    """Rows of a table that answer a question, by number from 0, and a sentence that describes them."""

    rows: tuple[int, ...]
    note: str


class Condition(Struct, frozen=True):
    """What a cell of a row must say: of several values, one of them, or none. ``column`` is the column's name."""

    column: str
    comparison: Comparison
    value: str | int | float | tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        return self.value if isinstance(self.value, tuple) else (str(self.value),)

    def __str__(self) -> str:
        sentence = " or ".join(value or "empty" for value in self.values)
        return f"{self.column} {SAID.get(self.comparison, self.comparison)} {sentence}"


class TableQuery(Struct, frozen=True):
    """A query of one of several tables, numbered from 1; ``table`` 0: none of them has the answer.

    All conditions of ``where`` must hold, or with ``any_of`` one of them. ``column`` is the name of the one that is
    added up or compared, or whose ``values`` are listed. ``group_by`` is that of the groups for which it is done; the
    largest or smallest is then the one of most or least rows, or with the largest or smallest sum of ``column``.
    """

    table: int
    operation: Operation = "list"
    column: str | None = None
    where: tuple[Condition, ...] = ()
    any_of: bool = False
    group_by: str | None = None


def parsed(text: str, table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the rows of a table in a text; a list has one column, named by what is above it."""
    if table.is_list:
        head = [": ".join(filter(None, (headings_above(text, table.start)[1], table.title)))]
        return head, [[item] for item in rows_of(text, table)]
    head = cells_of(table.head.split("\n")[0])
    rows = [(cells_of(line) + [""] * len(head))[: len(head)] for line in rows_of(text, table)]
    has_commas = any(DECIMAL_COMMA.fullmatch(UNIT.sub("", cell)) for row in rows for cell in row)
    for n, name in enumerate(head):
        dotted = [row for row in rows if "." in row[n]]
        is_certain = has_commas or MONEY.search(name)
        if is_certain and all(THOUSANDS.fullmatch(UNIT.sub("", row[n])) for row in dotted):
            for row in dotted:
                row[n] = row[n].replace(".", "")
    return head, rows


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
    conditions = [str(replace(one, column=head[column])) for one, column in zip(query.where, used, strict=True)]
    of_rows = described(len(chosen), len(usable), conditions, table.is_list, " or " if query.any_of else " and ")
    column, group = (columns.get((name or "").casefold()) for name in (query.column, query.group_by))
    if not chosen or (group is None) is not (query.group_by is None):
        return None
    if group is not None:
        return grouped(query.operation, column, group, head, rows, chosen, of_rows)
    return computed(query.operation, column, head, rows, chosen, of_rows)


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
    if operation == "values":
        values_of = sorted({*cells.values()} - {""})
        return TableAnswer(tuple(chosen), f"{name}, {len(values_of)}: {_listed(values_of)}. {of_rows}")
    figures = {n: value for n, cell in cells.items() if (value := figure(cell)) is not None}
    if any(len(cells[n]) > MAX_FIGURE_CHARS for n in figures):
        return TableAnswer(tuple(chosen), f"The figures of {name} are too long to compute. {of_rows}")
    if operation in ("largest", "smallest"):
        dates = {n: date for n, cell in cells.items() if (date := date_of(cell))}
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


def grouped(
    operation: Operation,
    column: int | None,
    group: int,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    chosen: Sequence[int],
    of_rows: str,
) -> TableAnswer | None:
    """Return the result of an operation on groups of rows with the same value; ``None`` if it has none for one."""
    groups: dict[str, list[int]] = {}
    for n in chosen:
        groups.setdefault(rows[n][group] or "empty", []).append(n)
    counts = column is None or operation == "count"
    what = "Rows" if counts else f"{'Average' if operation == 'average' else 'Sum'} of {head[column or 0]}"
    results: dict[str, Decimal] = {}
    for name, some in groups.items():
        figures = [one for n in some if (one := figure(rows[n][column or 0])) is not None]
        if not counts and not figures:
            return None
        if any(len(rows[n][column or 0]) > MAX_FIGURE_CHARS for n in some):
            return None
        with localcontext(EXACT):
            results[name] = Decimal(len(some)) if counts else sum(figures, Decimal(0))
            if operation == "average":
                results[name] = round(results[name] / len(figures), 2)
    if operation in ("largest", "smallest"):
        best = (max if operation == "largest" else min)(results.values())
        those = sorted(name for name, result in results.items() if result == best)
        best_of = f"{operation.capitalize()} {what[0].lower()}{what[1:]} per {head[group]}"
        rows_of_best = tuple(n for name in those for n in groups[name])
        return TableAnswer(rows_of_best, f"{best_of}: {_listed(those)}, {best:,}. {of_rows}")
    in_order = sorted(results.items(), key=lambda one: (-one[1], one[0]))
    sentence = _listed([f"{name} {result:,}" for name, result in in_order])
    return TableAnswer(tuple(chosen), f"{what} per {head[group]}: {sentence}. {of_rows}")


def _listed(values: Sequence[str]) -> str:
    more = f"; and {len(values) - MAX_VALUES_SAID} more" if len(values) > MAX_VALUES_SAID else ""
    return f"{'; '.join(values[:MAX_VALUES_SAID])}{more}"


def date_of(text: str) -> str | None:
    """Return a date, or a month, as ISO 8601 writes it; ``None`` for other text."""
    if DATE.fullmatch(text):
        return text
    if match := GERMAN_DATE.fullmatch(text):
        return f"{match[3]}-{int(match[2]):02}-{int(match[1]):02}"
    match = next(filter(None, (one.fullmatch(text) for one in WRITTEN_DATES)), None)
    if match is None:
        return None
    day = f"-{int(match['day']):02}" if match["day"] else ""
    return f"{match['year']}-{MONTHS[match['month'].lower()[:3]]:02}{day}"


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
    if condition.comparison in DENIED:
        return not any(_is(DENIED[condition.comparison], value, cell) for value in condition.values)
    return any(_is(condition.comparison, value, cell) for value in condition.values)


def _is(comparison: Comparison, value: str, cell: str) -> bool:
    """Return whether a cell compares to a value; of a date, as much is compared as the value has."""
    limit, own = figure(value), figure(cell)
    own_date = date_of(cell.strip())
    date = date_of(value.strip()) or (value.strip() if YEAR.fullmatch(value.strip()) else None)
    if order := ORDER.get(comparison):
        if limit is not None and own is not None:
            return order(own, limit)
        return bool(date and own_date and len(own_date) >= len(date)) and order(str(own_date)[: len(date or "")], date)
    has, wanted = cell.strip().casefold(), value.strip().casefold()
    if comparison == "contains":
        return wanted in has
    return has == wanted or (None not in (limit, own) and limit == own) or bool(date and str(own_date).startswith(date))
