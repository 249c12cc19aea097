"""Write text as Markdown: headings, list items, tables; and join pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from rag_assistant.records.documents import ExtractedText

DIGITS, ABOVE = "0123456789+-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b"
RAISED, LOWERED = str.maketrans(DIGITS, ABOVE), str.maketrans(ABOVE, DIGITS)
# After a unit such as m\u00b2, of two letters at most, it stays as it is.
POWER = re.compile(rf"(?:(?<=\d)|(?<=[^\W\d_]{{3}}))[{ABOVE}]+")
MAX_HEADING_LEVELS = 6
# Careless merged cells cover whole columns; the text is repeated at most this often.
MAX_SPREAD = 10_000
PAGE_BREAK = "\n\n"
# A table whose second line is the delimiter row; a nested table in a cell is escaped.
TABLE = re.compile(r"^\|.*\|\n\|(?: *:?-+:? *\|)+(?:\n\|.*\|)*", re.M)
# A paragraph directly after a table would become another row.
TABLE_END = re.compile(r"(?<=\|\n)(?=[^|\s])")
# A longer text than this is no label, and is not repeated in each row that its cell covers.
MAX_REPEATED_CHARS = 300
# At the beginning of a cell: how many columns, of which it is the last, and rows it covers.
MARK = "\ue001"
SPAN_MARK = re.compile(rf"{MARK}(\d+),(\d+){MARK}")
BORDER = re.compile(r"(?<!\\)\|")
ITEM = re.compile(r"( *)((?:-|\d+\.) )[^\n]*")
INNER_RULE = re.compile(r"\|(?: *:?-{3,}:? *\|)+")


def raised(digits: str) -> str:
    """Return digits and signs as superscript; a text with other characters unchanged."""
    return digits.translate(RAISED) if set(digits) <= set(DIGITS) else digits


def with_powers(text: str) -> str:
    """Return a text in which powers and footnote marks don't run into the number or word before."""
    return POWER.sub(lambda match: "^" + match[0].translate(LOWERED), text)


def heading(level: int, text: str) -> str:
    """Return a heading on one line, empty for an empty text."""
    line = " ".join(text.split())
    return f"{'#' * max(1, min(level, MAX_HEADING_LEVELS))} {line}" if line else ""


def item(depth: int, text: str, mark: str = "-") -> str:
    """Return a list item, empty for an empty text; ``depth`` 0 is the outermost."""
    line = " ".join(text.split())
    return f"{'  ' * min(depth, 8)}{mark} {line}" if line else ""


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a pipe table whose first row is its header, without empty rows and trailing empty columns."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    width = max((number for row in cells for number, cell in enumerate(row, 1) if cell), default=0)
    lines = ["| " + " | ".join((row + [""] * width)[:width]) + " |" for row in cells]
    return "\n".join([*lines[:1], "|" + " --- |" * width, *lines[1:]]) if lines else ""


class Span(Struct, frozen=True):
    """The rows and columns that a merged cell covers, from first to last."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def columns(self) -> range:
        """The columns to fill, up to the maximum."""
        return range(self.left, min(self.right, self.left + MAX_SPREAD) + 1)

    def within(self, row_of: Mapping[int, int], column_of: Mapping[int, int]) -> Span | None:
        """Return what is left of it with only some rows and columns, by their new numbers."""
        if self.top not in row_of or self.left not in column_of:
            return None
        rows = [row_of[n] for n in range(self.top, min(self.bottom, self.top + MAX_SPREAD) + 1) if n in row_of]
        columns = [column_of[n] for n in self.columns if n in column_of]
        return Span(rows[0], columns[0], rows[-1], columns[-1])


def spread(rows: list[list[str]], spans: Sequence[Span]) -> list[list[str]]:
    """Return rows in which a merged cell's text is repeated in each row it covers.

    A two-row header, whose upper names span several of the lower, becomes one row.
    """
    first = next((n for n, row in enumerate(rows) if sum(map(bool, row)) > 1), None)
    has_groups = False
    for span in spans:
        is_group = span.top == first and span.right > span.left
        has_groups = has_groups or (is_group and span.bottom == span.top)
        right = min(span.right if is_group else span.left, len(rows[span.top]) - 1)
        for row in rows[span.top : span.bottom + 1]:
            row[span.left : right + 1] = [rows[span.top][span.left]] * (right + 1 - span.left)
    return [*rows[:first], *_with_one_head(rows[first:])] if first is not None and has_groups else rows


def _with_one_head(rows: list[list[str]]) -> list[list[str]]:
    if len(rows) < 3 or len(rows[0]) != len(rows[1]):
        return rows
    both = zip(rows[0], rows[1], strict=True)
    return [[upper if upper == lower else f"{upper} {lower}".strip() for upper, lower in both], *rows[2:]]


def with_plain_tables(text: str) -> str:
    """Return a text with its tables in our style, without alignment padding.

    A table of a single row is only a frame around text, and becomes that text.
    """
    plain = TABLE.sub(lambda match: _plain([_cells(line) for line in match[0].split("\n")]), TABLE_END.sub("\n", text))
    return SPAN_MARK.sub("", plain)


def _plain(rows: list[list[str]]) -> str:
    rows, spans = [[cell.strip() for cell in row] for row in rows if row], list[Span]()
    for line, row in enumerate(rows):
        for column, cell in enumerate(row):
            if match := SPAN_MARK.match(cell):
                text, start = cell[match.end() :].lstrip(), max(0, column + 1 - int(match[1]))
                row[column], row[start] = "", text
                right, down = (column, int(match[2])) if 0 < len(text) <= MAX_REPEATED_CHARS else (start, 1)
                spans.append(Span(line, start, line + down - 1, right))
    rows = [row for row in spread(rows, spans) if any(row)]
    return " ".join(" ".join(rows[0]).split()) if len(rows) == 1 else table(rows)


def _cells(line: str) -> list[str]:
    """Return the cells of a row, none for the delimiter row."""
    if re.fullmatch(r"[|: ]*-[|:\- ]*", line):
        return []
    cells = [cell.replace("\\|", "|") for cell in BORDER.split(line.strip())[1:-1]]
    return [INNER_RULE.sub("|", cell) for cell in cells]


def joined(blocks: Sequence[str]) -> str:
    """Return blocks with an empty line between them; items of one list follow each other directly.

    An item's parent may be several levels up: it is indented to where the parent's text begins.
    """
    parts: list[str] = []
    # For each possible parent of the next item: its depth, and where its text begins.
    around: list[tuple[int, int]] = []
    for block in filter(str.strip, blocks):
        gap, match = "\n" if around else "\n\n", ITEM.fullmatch(block.rstrip())
        if match is None:
            parts.append("\n\n" + block.rstrip())
            around.clear()
            continue
        depth = len(match[1])
        while around and around[-1][0] >= depth:
            around.pop()
        indent = around[-1][1] if around else 0
        around.append((depth, indent + len(match[2])))
        parts.append(gap + " " * indent + block.strip())
    return "".join(parts).lstrip("\n")


def pages_of(
    pages: Sequence[str], media_type: str, warning: str | None = None, *, markdown: bool = False
) -> ExtractedText:
    starts, length = [], 0
    for page in pages:
        starts.append(length)
        length += len(page) + len(PAGE_BREAK)
    text = "".join(page + PAGE_BREAK for page in pages)
    return ExtractedText(text, media_type, tuple(starts), markdown, warning)
