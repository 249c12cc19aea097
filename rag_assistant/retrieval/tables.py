"""The tables of a Markdown text: what of one goes with a row, so that the row says something alone. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right

# The line under a table's head. Before it stands the head, behind it the rows, up to a line without a border.
RULE = re.compile(r"^ {0,3}\|?(?: *:?-+:? *\|)+(?: *:?-+:?)? *$", re.M)
ROWS = re.compile(r"(?:\n[^\n]*\|[^\n]*)*")
BORDER = re.compile(r"(?<!\\)\|")


class Tables:
    """Where the tables of a text are."""

    def __init__(self, text: str) -> None:
        self._text = text
        # Where each head begins and ends, and where the last row ends.
        self.places: list[tuple[int, int, int]] = []
        for rule in RULE.finditer(text):
            if self.places and rule.start() < self.places[-1][2]:
                continue
            start = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
            if "|" in text[start : rule.start()]:
                rows = ROWS.match(text, rule.end())
                self.places.append((start, rule.end(), rows.end() if rows else rule.end()))

    def head_at(self, position: int, max_chars: int) -> str:
        """Return the head that stands above a row, if a row begins at ``position`` and its head is no longer than that.

        It ends with the line under it, so that head and row are a table.
        """
        above = bisect_right(self.places, position, key=lambda place: place[1]) - 1
        if above < 0 or self._text[position - 1 : position] != "\n":
            return ""
        start, rows, end = self.places[above]
        return self._text[start:rows] + "\n" if position < end and rows - start <= max_chars else ""


def without_rules(text: str) -> str:
    """Return a text without the lines of dashes in its tables, which say nothing."""
    return RULE.sub("", text)


def spelled_out(text: str) -> str:
    """Return a text whose rows of tables are sentences that name each cell: ``bird: goose, number: 17.``"""
    pieces, position = [], 0
    for start, rows, end in Tables(text).places:
        head = _cells(text[start:rows].split("\n")[0])
        lines = [_spelled_out(head, _cells(line)) for line in text[rows:end].split("\n") if line]
        pieces += [text[position:start], "\n".join(lines)]
        position = end
    return "".join([*pieces, text[position:]])


def _spelled_out(head: list[str], cells: list[str]) -> str:
    named = zip(head + [""] * len(cells), cells, strict=False)
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell) + "."


def _cells(line: str) -> list[str]:
    cells = BORDER.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]
