"""Query a table: filter its rows, then list, count, add up or compare them. Exact, over all rows. Pure."""

import operator
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from decimal import Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from pkgutil import get_data
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.json import decode as from_json
from msgspec.structs import replace

from rag_assistant.retrieval.tables import Table, cells_of, headings_above, rows_of

# What words mean, in English and German.
DATA = from_json(get_data(str(__package__), "table_words.json") or b"")
# A row with totals.
TOTAL = re.compile(r"\W*(?:(?:grand|sub)[ -]?)?(?:total|sum|summe|gesamt\w*|zwischensumme)\W*", re.IGNORECASE)
UNIT = re.compile(r"^[A-Z]{3}(?=[\s\d])|(?<=[\s\d])[A-Z]{3}$|(?<!\s)\s*[€$£%]\s*")
NUMBER = re.compile(r"[-+]?\d[\d.,'\u2019 ]*")
DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
TIME = re.compile(r"\d{1,2}:\d\d(?P<seconds>:\d\d)?")
PLAIN_FIGURE = re.compile(r"[\d.,:-]+")
DECIMAL_COMMA = re.compile(r"[-+]?\d[\d.]*+,\d{1,2}")
SEPARATORS = str.maketrans("", "", "'\u2019 ")
# Longer figures aren't computed; within this precision, those of any number of rows are exact.
MAX_FIGURE_CHARS = 100
EXACT = Context(prec=3 * MAX_FIGURE_CHARS)
MAX_CONDITIONS, MAX_SECONDS = 8, 2
YEAR = re.compile(r"(?:18|19|20)\d\d")
OF_YEAR = "jan feb mar apr may jun jul aug sep oct nov dec jan feb mär apr mai jun jul aug sep okt nov dez"
MONTHS = {name: n % 12 + 1 for n, name in enumerate(OF_YEAR.split())}
MONTH = DATA["month"]
DAY = r"(?P<day>\d{1,2})(?:\.|st|nd|rd|th)?"
WRITTEN_DATES = [
    re.compile(r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4})"),
    re.compile(rf"(?:{DAY} )?(?P<month>{MONTH})\.?,? (?P<year>\d{{4}})", re.IGNORECASE),
    re.compile(rf"(?P<month>{MONTH})\.? {DAY},? (?P<year>\d{{4}})", re.IGNORECASE),
]
NAME_OF_MONTH, NO_YEAR = re.compile(MONTH, re.IGNORECASE), "0000"
MONEY = re.compile(DATA["names"]["money"], re.IGNORECASE)
# Figures like 1.500: of money, or beside 12,50, that is 1,500.
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+")
# Up to this many values are written out as a sum.
MAX_SUMMANDS = 12
# From this many rows on, one figure that is their sum is none of their kind.
MIN_SUMMANDS = 3
MAX_VALUES_SAID = 30

Operation = Literal["list", "count", "sum", "average", "largest", "smallest", "values"]
Comparison = Literal["=", "!=", "contains", "not contains", ">", ">=", "<", "<="]
ORDER: dict[str, Callable[..., bool]] = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
EXTREMES: dict[str, Callable[..., Any]] = {"largest": max, "smallest": min}
PLAIN: dict[str, Comparison] = {"!=": "=", "not contains": "contains"}
DENIED: dict[str, Comparison] = {"=": "!=", "contains": "not contains"}
SAID = {"=": "is", "!=": "is not", "not contains": "does not contain"}


class QueryTooLarge(Exception):
    """A query with more than MAX_CONDITIONS, or that takes longer than MAX_SECONDS of CPU."""


class TableAnswer(Struct, frozen=True):
    """Rows of a table that answer a question, by number from 0, and sentences that describe them, a line each."""

    rows: tuple[int, ...]
    note: str


class Summed(Struct):
    """The sums of some rows, by column."""

    rows: int = 0
    sums: dict[int, Decimal] = field(default_factory=dict)


class Condition(Struct, frozen=True):
    """What a cell of a row must say: of several values, one of them, or none. ``column`` is the column's name."""

    column: str
    comparison: Comparison
    value: str | int | float | tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        return self.value if isinstance(self.value, tuple) else (str(self.value),)

    def __str__(self) -> str:
        quoted = [one if PLAIN_FIGURE.fullmatch(one) else f"“{one}”" if one else "empty" for one in self.values]
        return f"“{self.column}” {SAID.get(self.comparison, self.comparison)} {' or '.join(quoted)}"


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
    """Return the result of a query; ``None`` if it names no column or finds nothing. Raises QueryTooLarge."""
    if len(query.where) > MAX_CONDITIONS:
        raise QueryTooLarge
    end = time.thread_time() + MAX_SECONDS
    head, rows = parsed(text, table)
    columns = {name.casefold(): n for n, name in enumerate(head)}
    used = [0 if table.is_list else columns.get(one.column.casefold(), -1) for one in query.where]
    column, group = (columns.get((name or "").casefold()) for name in (query.column, query.group_by))
    usable = usable_rows(rows)
    conditions_met, chosen = any if query.any_of else all, list[int]()
    for n in usable if -1 not in used else ():
        if time.thread_time() > end:
            raise QueryTooLarge
        if conditions_met(_holds(one, rows[n][at]) for one, at in zip(query.where, used, strict=True)):
            chosen.append(n)
    compared = {at for one, at in zip(query.where, used, strict=True) if one.comparison in ORDER}
    compared |= {column} if column is not None and query.operation not in ("list", "count", "values") else set()
    is_clear = all(_is_comparable([rows[n][at] for n in usable]) for at in compared)
    is_clear &= _may_be_subtotals(rows).isdisjoint(chosen)
    if not (chosen and is_clear) or (group is None) is not (query.group_by is None):
        return None
    unit = "items" if table.is_list else "rows"
    conditions = [str(replace(one, column=head[at])) for one, at in zip(query.where, used, strict=True)]
    where = (" or " if query.any_of else " and ").join(conditions)
    of_rows = f"{len(chosen)} of {len(usable)} {unit}, where {where}." if where else f"{len(usable)} {unit}."
    name, cells = head[column or 0], {n: "" if column is None else rows[n][column] for n in chosen}
    if group is not None:
        groups: dict[str, dict[int, str]] = {}
        spelled: dict[str, str] = {}
        for n in chosen:
            value = rows[n][group] or "empty"
            groups.setdefault(spelled.setdefault(value.casefold(), value), {})[n] = cells[n]
        is_counted = column is None or query.operation == "count"
        result = _grouped(query.operation, "" if is_counted else name, head[group], groups)
    elif query.operation in ("list", "count"):
        result = chosen, ""
    else:
        result = _computed(query.operation, name, cells) if column is not None else None
    with_figure = sum(figure(one) is not None for one in cells.values())
    if column is not None and query.operation in ("sum", "average") and with_figure < len(cells):
        of_rows += f"\nOf these, {with_figure} have a figure."
    return TableAnswer(tuple(result[0]), f"{result[1]}\n{of_rows}".lstrip()) if result else None


def usable_rows(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the numbers of the rows with text that don't add up others: Total may be the name of a supplier."""
    firsts = Counter(row[0] for row in rows if not TOTAL.fullmatch(row[0]))
    is_named = [firsts[row[0]] == 1 and row[0] != "" for row in rows]
    return [n for n, row in enumerate(rows) if any(row) and (is_named[n] or not any(map(TOTAL.fullmatch, row)))]


def _may_be_subtotals(rows: Sequence[Sequence[str]]) -> Set[int]:
    """Return the numbers of the rows whose figures all add up those above, of the whole table or since the last such.

    By chance, other rows do so, too.
    """
    subtotals: set[int] = set()
    whole, part = Summed(), Summed()
    for n, row in enumerate(rows):
        # Its name may be a figure, too: 2025.
        own = {at: value for at, cell in enumerate(row) if (value := figure(cell))}
        common = own.keys() & whole.sums.keys()
        least = MIN_SUMMANDS - (len(common) > 1)
        if common and any(
            one.rows >= least and all(one.sums.get(at) == own[at] for at in common) for one in (whole, part)
        ):
            subtotals.add(n)
            part = Summed()
            continue
        for above in (whole, part):
            above.rows += 1
            above.sums |= {at: above.sums.get(at, Decimal(0)) + value for at, value in own.items()}
    return subtotals


def _computed(operation: Operation, name: str, cells: Mapping[int, str]) -> tuple[Iterable[int], str] | None:
    """Return the rows and the sentence of an operation on a column's cells that have figures, or mostly dates."""
    if operation == "values":
        different = sorted({cell.casefold(): cell for cell in cells.values() if cell}.values())
        return cells, f"{name}, {len(different)}: {_listed(different)}."
    figures = {n: value for n, cell in cells.items() if (value := figure(cell)) is not None}
    if any(len(cells[n]) > MAX_FIGURE_CHARS for n in figures):
        return cells, f"The figures of {name} are too long to compute."
    if operation in EXTREMES:
        dates = {n: date for n, cell in cells.items() if (date := date_of(cell))}
        values: Mapping[int, Any] = dates if len(dates) > len(figures) else figures
        best = EXTREMES[operation](values.values(), default=None)
        those = [n for n, value in values.items() if value == best]
        return (those, f"{operation.capitalize()} {name}: {cells[those[0]]}.") if those else None
    if not figures:
        return None
    result = _added_up(operation, figures.values())
    if operation == "average":
        return cells, f"Average of {name}: {result:,}."
    parts = f"{' + '.join(map('{:,}'.format, figures.values()))} = " if 1 < len(figures) <= MAX_SUMMANDS else ""
    return cells, f"Sum of {name}: {parts}{result:,}."


def _grouped(
    operation: Operation, name: str, group: str, groups: Mapping[str, Mapping[int, str]]
) -> tuple[Iterable[int], str] | None:
    """Return the same for groups of rows with the same value; without the name of a column, the rows are counted."""
    what = f"{'Average' if operation == 'average' else 'Sum'} of {name}" if name else "Rows"
    results: dict[str, Decimal] = {}
    for one, cells in groups.items():
        figures = [value for cell in cells.values() if (value := figure(cell)) is not None]
        if name and (not figures or any(len(cell) > MAX_FIGURE_CHARS for cell in cells.values())):
            return None
        results[one] = _added_up(operation, figures) if name else Decimal(len(cells))
    if operation in EXTREMES:
        best = EXTREMES[operation](results.values())
        those = sorted(one for one, result in results.items() if result == best)
        most = ("Most" if operation == "largest" else "Fewest") if not name else operation.capitalize()
        best_of = f"{most} {what[0].lower()}{what[1:]} per {group}"
        return [n for one in those for n in groups[one]], f"{best_of}: {_listed(those)}, {best:,}."
    in_order = sorted(results.items(), key=lambda one: (-one[1], one[0]))
    sentence = _listed([f"{one} {result:,}" for one, result in in_order])
    return sorted(n for cells in groups.values() for n in cells), f"{what} per {group}: {sentence}."


def _is_comparable(cells: Collection[str]) -> bool:
    """Return whether all figures of a column can be read (not "30-40" or "1.2 million") and have one currency.

    Times must all have seconds, or none: 58:12 may be minutes.
    """
    units = {unit.strip() for cell in cells if figure(cell) is not None for unit in UNIT.findall(cell)}
    with_digits = [cell for cell in cells if any(map(str.isdigit, cell))]
    times = {bool(match["seconds"]) for cell in with_digits if (match := TIME.fullmatch(cell))}
    return max(len(units), len(times)) <= 1 and all(figure(one) is not None or date_of(one) for one in with_digits)


def _added_up(operation: Operation, figures: Collection[Decimal]) -> Decimal:
    with localcontext(EXACT):
        total = sum(figures, Decimal(0))
        return round(total / len(figures), 2) if operation == "average" else total


def _listed(values: Sequence[str]) -> str:
    more = [f"... (+{len(values) - MAX_VALUES_SAID})"] if len(values) > MAX_VALUES_SAID else []
    return "; ".join([*values[:MAX_VALUES_SAID], *more])


def date_of(text: str) -> str | None:
    """Return a date, a month (of the year 0 if it has none) or a time as in ISO 8601; ``None`` for other text."""
    if DATE.fullmatch(text):
        return text
    if time_of_day := TIME.fullmatch(text):
        return text.zfill(len("00:00:00" if time_of_day["seconds"] else "00:00"))
    if NAME_OF_MONTH.fullmatch(text):
        return date_of(f"{text} {NO_YEAR}")
    match = next(filter(None, (one.fullmatch(text) for one in WRITTEN_DATES)), None)
    if match is None:
        return None
    day = f"-{int(match['day']):02}" if match["day"] else ""
    return f"{match['year']}-{MONTHS.get(match['month'].lower()[:3]) or int(match['month']):02}{day}"


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
    plain = PLAIN.get(condition.comparison, condition.comparison)
    return any(_is(plain, value, cell) for value in condition.values) is (plain == condition.comparison)


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
