"""Repeat the text of merged cells in a web page's tables, in each row and column. Pure."""

import re

from msgspec import Struct, field

from rag_assistant.extraction.formats.packages import number
from rag_assistant.extraction.formats.web_pages import TAG, attributes_of

MERGED = re.compile(r"\b(?:row|col)span\b", re.I)
# More is an error of the page's author, and a longer text is no label.
MAX_SPAN, MAX_REPEATED_CHARS = 200, 300


class _Table(Struct):
    """The state of a table being read: row and column, cells spanning from rows above, and the open cell."""

    row: int = 0
    column: int = 0
    above: dict[int, tuple[int, str]] = field(default_factory=dict)
    cell: tuple[int, int, int] | None = None
    beside: list[tuple[int, str]] = field(default_factory=list)
    cells: int = 0


def with_merged_cells(page: str) -> str:
    """Return a page without merged cells: their text is repeated in each row they cover.

    In the first row also in each column: there it is the name of several.
    """
    if not MERGED.search(page):
        return page
    written: list[str] = []
    tables: list[_Table] = []
    position = 0
    for match in TAG.finditer(page):
        ends, tag = bool(match[1]), match[2].lower()
        if tag not in ("table", "tr", "td", "th") or (tag != "table" and not tables):
            continue
        written.append(page[position : match.start()])
        position = match.end()
        if tag == "table" and not ends:
            tables.append(_Table())
        elif tag in ("td", "th"):
            _close_cell(tables[-1], written)
            if not ends:
                _open_cell(tables[-1], written, attributes_of(match[3]))
                continue
        elif tables:
            _end_row(tables[-1], written)
            if tag == "table":
                tables.pop()
        if tag in ("table", "tr"):
            written.append(match[0])
    return "".join([*written, page[position:]])


def _open_cell(table: _Table, written: list[str], attributes: dict[str, str]) -> None:
    _write_above(table, written)
    most = MAX_SPAN if table.column < MAX_SPAN else 1
    wide, deep = (max(1, min(number(attributes.get(name), 1), most)) for name in ("colspan", "rowspan"))
    written.append("<td>")
    table.cell = len(written), wide, deep
    table.cells += 1


def _close_cell(table: _Table, written: list[str]) -> None:
    if table.cell is None:
        return
    start, wide, deep = table.cell
    text = "".join(written[start:])
    text = text if len(text) <= MAX_REPEATED_CHARS else ""
    written.append("</td>")
    for n in range(wide):
        if n:
            table.beside.append((len(written), text))
            written.append("<td></td>")
        if deep > 1:
            table.above[table.column + n] = deep - 1, text if n == 0 or not table.row else ""
    table.column, table.cell = table.column + wide, None


def _write_above(table: _Table, written: list[str]) -> None:
    """Write the cells that span to this row from above."""
    while table.column in table.above:
        rows, text = table.above.pop(table.column)
        written.append(f"<td>{text}</td>")
        if rows > 1:
            table.above[table.column] = rows - 1, text
        table.column += 1


def _end_row(table: _Table, written: list[str]) -> None:
    _close_cell(table, written)
    if not table.cells:
        return
    _write_above(table, written)
    if not table.row and table.cells > 1:
        for index, text in table.beside:
            written[index] = f"<td>{text}</td>"
    table.row, table.column, table.cells, table.beside = table.row + 1, 0, 0, []
