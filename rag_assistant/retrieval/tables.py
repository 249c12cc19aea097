"""The tables of a Markdown text: what of one goes with a row, so that the row says something alone. Pure."""

import re
from bisect import bisect_right

from msgspec import Struct
from msgspec.structs import replace

# The line under a table's head. Before it stands the head, behind it the rows, up to a line without a border.
RULE = re.compile(r"^ {0,3}\|?(?: *:?-+:? *\|)+(?: *:?-+:?)? *$", re.M)
ROWS = re.compile(r"(?:\n[^\n]*\|[^\n]*)*")
BORDER = re.compile(r"(?<!\\)\|")


# So many rows may tell what a table is about before the one that names its columns, as in workbooks.
MAX_TITLE_ROWS = 5


class Table(Struct, frozen=True):
    """Where a table begins, where its first row of values does, and where it ends; its head and its title.

    ``head`` are the names of its columns with the line below them; ``title`` is what stands in rows above the names.
    """

    start: int
    rows: int
    end: int
    head: str
    title: str = ""


class Tables:
    """The tables of a text."""

    def __init__(self, text: str) -> None:
        self.all: list[Table] = []
        for rule in RULE.finditer(text):
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
    """Return a table with its head: its first row, or the first below those that hold hardly anything."""
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
    """Tell whether one cell of a row holds something, or one of five."""
    return len(_filled(line)) <= max(1, len(cells_of(line)) // 5) < len(cells_of(line)) - 1


def _filled(line: str) -> list[str]:
    return list(filter(None, cells_of(line)))


def without_rules(text: str) -> str:
    """Return a text without the lines of dashes in its tables, which say nothing."""
    return RULE.sub("", text)


def spelled_out(text: str) -> str:
    """Return a text whose rows of tables are sentences that name each cell: ``bird: goose, number: 17.``"""
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
