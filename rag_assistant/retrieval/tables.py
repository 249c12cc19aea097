"""The tables of a Markdown text: the context that makes a row understandable alone. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

# The delimiter row below a table's header. After it come the rows, up to a line without a border.
RULE = re.compile(r"^ {0,3}\|?(?: *:?-+:? *\|)+(?: *:?-+:?)? *$", re.M)
ROWS = re.compile(r"(?:\n[^\n]*\|[^\n]*)*")
BORDER = re.compile(r"(?<!\\)\|")
MARK = r"(?:[-*+•]|\d{1,3}[.)])[ \t]+"
MARKED = re.compile(rf"^( *){MARK}", re.M)
# Consecutive items, each with what is indented below it.
LIST = re.compile(rf"^( *){MARK}\S.*(?:\n\1(?:{MARK}|[ \t]+)\S.*|\n(?=\n\1{MARK}\S))*", re.M)
HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++((?:.*[^\s#])?)(?:[^\S\n]|#)*$", re.M)


# How far above a list its introduction is searched for.
MAX_TITLE_CHARS = 300
# How many title rows may precede the column names, as in workbooks.
MAX_TITLE_ROWS = 5


class Table(Struct, frozen=True):
    """The start of a table, of its first row of values, and its end; its header and its title.

    ``head`` are the column names with the delimiter row; ``title`` is the text of rows above the names. A list is a
    table of one column without a header.
    """

    start: int
    rows: int
    end: int
    head: str
    title: str = ""
    is_list: bool = False


class Tables:
    """The tables of a text."""

    def __init__(self, text: str) -> None:
        self.all: list[Table] = []
        for rule in RULE.finditer(text) if "|" in text else ():
            if self.all and rule.start() < self.all[-1].end:
                continue
            start = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
            if "|" in text[start : rule.start()]:
                rows = ROWS.match(text, rule.end())
                self.all.append(_with_title(text, Table(start, rule.end(), rows.end() if rows else rule.end(), "")))

    def at(self, position: int) -> Table | None:
        above = bisect_right(self.all, position, key=lambda table: table.start) - 1
        return self.all[above] if above >= 0 and position < self.all[above].end else None


def _with_title(text: str, table: Table) -> Table:
    """Return a table with its header: its first row, or the first below nearly empty ones."""
    first, _, rule = text[table.start : table.rows].partition("\n")
    lines, position = [first], table.rows + 1
    while len(lines) <= MAX_TITLE_ROWS and _is_title(lines[-1]) and position < table.end:
        end = text.find("\n", position, table.end)
        lines.append(text[position : end if end >= 0 else table.end])
        position += len(lines[-1]) + 1
    if len(lines) == 1 or 2 * len(_filled(lines[-1])) < len(cells_of(lines[-1])) or position >= table.end:
        return replace(table, rows=table.rows + 1, head=text[table.start : table.rows])
    title = " ".join(cell for line in lines[:-1] for cell in _filled(line))
    return replace(table, rows=position, head=f"{lines[-1]}\n{rule}", title=title)


def _is_title(line: str) -> bool:
    """Return whether one cell of a row has text, or one in five."""
    return len(_filled(line)) <= max(1, len(cells_of(line)) // 5) < len(cells_of(line)) - 1


def _filled(line: str) -> list[str]:
    return list(filter(None, cells_of(line)))


def lists_of(text: str) -> Iterator[Table]:
    """Yield the lists of a text; a list's title is the line above it that ends with a colon."""
    for match in LIST.finditer(text):
        above = text[max(0, match.start() - MAX_TITLE_CHARS) : match.start()].rstrip().rpartition("\n")[2]
        title = above.strip(" :") if above.endswith(":") else ""
        yield Table(match.start(), match.start(), match.end(), "", title, is_list=True)


def rows_of(text: str, table: Table) -> list[str]:
    """Return the rows of a table, or the items of a list, unchanged."""
    within = text[table.rows : table.end]
    if not table.is_list:
        return [line.strip() for line in within.split("\n") if line.strip()]
    indent = len(within) - len(within.lstrip(" "))
    starts = [match.start() for match in MARKED.finditer(within) if len(match[1]) == indent]
    return [within[start:end].rstrip() for start, end in pairwise([*starts, len(within)])]


def headings_above(text: str, position: int) -> tuple[str, str]:
    """Return the first heading of a text and the nearest one above a position, empty if there is none."""
    headings = [match[1] for match in HEADING.finditer(text, 0, position)]
    return (headings[0], headings[-1]) if headings else ("", "")


def without_rules(text: str) -> str:
    """Return a text without the delimiter rows of its tables."""
    return RULE.sub("", text)


def spelled_out(text: str) -> str:
    """Return a text with table rows as sentences that name each cell: ``bird: goose, number: 17.``"""
    pieces, position = [], 0
    for table in Tables(text).all:
        head = cells_of(table.head.split("\n")[0])
        lines = [_spelled_out(head, cells_of(line)) for line in text[table.rows : table.end].split("\n") if line]
        title = f"{table.title}\n" if table.title else ""
        pieces += [text[position : table.start], title, "\n".join(lines)]
        position = table.end
    return "".join([*pieces, text[position:]])


def _spelled_out(head: list[str], cells: list[str]) -> str:
    named = zip(head + [""] * len(cells), cells, strict=False)
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell) + "."


def cells_of(line: str) -> list[str]:
    cells = BORDER.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]
