"""The introduction for a chunk that begins inside a table, a list or code, so that it makes sense alone.

A row gets the table's caption and header, an item the line before its list and its parent items, a line of code the
line above the code and the fence. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from rag_assistant.retrieval.tables import BORDER, Table, Tables, cells_of

# A longer line above isn't only an introduction.
MAX_CAPTION_CHARS = 200
# What the borders of a shortened header take for each column, and the shortest name.
BORDER_CHARS, MIN_NAME_CHARS = 5, 4
# How far above a list's introduction is searched for.
MAX_LIST_CHARS = 10_000
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*$", re.M)
ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+\S")
HEADING = re.compile(r" {0,3}#{1,6}\s")


class Leads:
    """The tables, lists and code of a Markdown text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tables = Tables(text)
        self._code = _code_of(text)

    def at(self, position: int, max_chars: int) -> str:
        """Return the introduction for a chunk that begins at ``position``; empty if there is none.

        Column names are shortened to fit; anything else that is too long is left out.
        """
        line = self._text.rfind("\n", 0, position) + 1
        if before := self._text[line:position].strip():
            return self._within_row(line, before, max_chars)
        position = line
        code = bisect_right(self._code, position, key=lambda one: one[0]) - 1
        if code >= 0 and position < self._code[code][1]:
            start = self._code[code][0]
            fence = self._text[start : self._text.find("\n", start) + 1] if position > start else ""
            parts = [self._caption(start), fence]
        else:
            parts = self._above_row(position, max_chars) or self._above_item(position)
        # What is nearer matters more: the fence or the header, then the line above it.
        while parts and sum(map(len, parts)) > max_chars:
            parts = parts[1:]
        return "".join(parts)

    def _within_row(self, line: int, before: str, max_chars: int) -> str:
        """Return what a piece of a long row belongs to: its first cell, and the names of the columns that follow."""
        table = self._tables.at(line)
        if table is None or line < table.rows:
            return ""
        cells = cells_of(before)
        names = cells_of(table.head.partition("\n")[0])[len(cells) - (not before.endswith("|")) :][
            : max_chars // (2 * MIN_NAME_CHARS)
        ]
        label = "".join(_shortened(cells[:1], max_chars // 4))
        return f"{label}: {' | '.join(_shortened(names, max_chars - len(label) - 3 * len(names) - 3))}\n"

    def _above_row(self, position: int, max_chars: int) -> list[str]:
        table = self._tables.at(position)
        if table is None:
            return []
        caption = self._caption(table.start, table.title if position > table.start else "")
        return [caption, f"{_head(table, max_chars - 1)}\n" if position >= table.rows else ""]

    def _above_item(self, position: int) -> list[str]:
        """Return the line before a list, and the parents of the item at ``position``."""
        item = ITEM.match(self._text[position : position + MAX_CAPTION_CHARS])
        if item is None:
            return []
        indent, parts, end = len(item[1]), list[str](), position
        while end > max(0, position - MAX_LIST_CHARS):
            start = self._text.rfind("\n", 0, end - 1) + 1
            line = self._text[start : end - 1]
            above = ITEM.match(line)
            if above and len(above[1]) < indent:
                indent = len(above[1])
                parts.insert(0, f"{line[:MAX_CAPTION_CHARS]}\n")
            elif line.strip() and not above and not line.startswith((" ", "\t")):
                return [self._caption(end), *parts]
            end = start
        return parts

    def _caption(self, position: int, title: str = "") -> str:
        """Return a block's title, after the line above it if that is a short paragraph of its own, but no heading."""
        above = self._text[:position].rstrip("\n") if position < 2 else self._text[max(0, position - 1_000) : position]
        line = above.rstrip("\n").rpartition("\n")[2]
        is_apart = len(above) - len(above.rstrip("\n")) > 2 or len(line) > MAX_CAPTION_CHARS
        is_other = HEADING.match(line) or FENCE.match(line) or BORDER.search(line) or ITEM.match(line)
        caption = ", ".join(filter(None, ("" if is_apart or is_other else line.strip(), title)))
        return f"{caption}\n\n" if caption else ""


def _head(table: Table, max_chars: int) -> str:
    """Return a table's header; if it is too long, with shorter names, and without its last columns if need be."""
    if len(table.head) <= max_chars:
        return table.head
    names = cells_of(table.head.partition("\n")[0])[: max_chars // (BORDER_CHARS + MIN_NAME_CHARS)]
    shorter = _shortened(names, max_chars - BORDER_CHARS * len(names) - 4)
    return f"| {' | '.join(shorter)} |\n|{'-|' * len(names)}" if shorter else ""


def _shortened(names: Sequence[str], max_chars: int) -> list[str]:
    """Return names of which none is longer than its share of some characters."""
    share = max(1, max_chars // max(1, len(names)))
    return [name if len(name) <= share else name[: share - 1].rstrip() + "…" for name in names]


def _code_of(text: str) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    opening: re.Match[str] | None = None
    for fence in FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence[1].startswith(opening[1]):
            ranges.append((opening.start(), fence.end()))
            opening = None
    return [*ranges, *([(opening.start(), len(text))] if opening else [])]
