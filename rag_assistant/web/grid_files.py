"""Cells of tables in words and with links, and tables as files for spreadsheets."""

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import date
from io import BytesIO, StringIO

from flask import request, url_for

from rag_assistant.answering.cell_values import unit_of
from rag_assistant.records import Cell, Grid, GridRow
from rag_assistant.web.i18n.languages import N_
from rag_assistant.web.languages import gettext
from rag_assistant.web.routing import NO_ADDRESS

OUTCOMES = {"not_found": N_("not found"), "yes": N_("yes"), "no": N_("no"), "failed": N_("failed")}
DOUBTS = {
    "disagreement": N_("The model calls this a contradiction: check it."),
    "unverified": N_("This was not confirmed automatically: check it."),
    "other_values": N_("A place with the question's words has another value."),
    "more_answered": N_("The model's answer says more than this."),
    "not_understood": N_("Read from the quote without a model."),
    "not_cited": N_("This cites none of the passages."),
    "wrong_type": N_("This could not be read as a value of the column's type."),
    "ambiguous_date": N_("The day and the month of this date may be swapped."),
    "outdated": N_("The document has changed since."),
}
# A spreadsheet takes text that begins so for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MAX_WIDTH = 40


def in_words(cell: Cell, column_type: str = "") -> str:
    """Return what a cell shows: its value, "not found" or "failed"; nothing while it has no answer."""
    if cell.result is None:
        return gettext(OUTCOMES["failed"]) if cell.state == "failed" else ""
    result = cell.result
    word = result.value if column_type == "yes_no" and result.value else result.outcome
    return gettext(OUTCOMES[word]) if word in OUTCOMES else result.value


def doubts_in_words(cell: Cell) -> list[str]:
    """Return what a reader is told about a cell's value."""
    names = [cell.result.outcome, cell.result.doubt, "outdated" if cell.outdated else None] if cell.result else []
    return [gettext(DOUBTS[name]) for name in names if name in DOUBTS]


def sentence_in_words(cell: Cell) -> list[str]:
    """Return the text that is shown beside a cell for which none is sure: the nearest one."""
    result = cell.result
    if result is None or not result.quote or (result.outcome != "not_found" and result.doubt != "unverified"):
        return []
    return [gettext("The nearest text: {sentence}", sentence=result.quote)]


def link_to(cell: Cell, *, outside: bool = True) -> str:
    """Return the address of the sentence a cell rests on, of the document alone if that has changed since.

    A command without a server has none: ``""``.
    """
    if outside and NO_ADDRESS in request.environ:
        return ""
    place = {one: getattr(cell.result, one) for one in ("start", "end") if cell.result and not cell.outdated}
    return url_for("document_pages.document", document_id=cell.document_id, _external=outside, **place)


def _headings(name: str) -> tuple[str, str, str]:
    return name, f"{name} ({gettext('check')})", f"{name} ({gettext('Source')})"


def as_csv(grid: Grid, rows: Sequence[GridRow]) -> bytes:
    """Return a table as CSV: behind each value, its doubts, and its quote with the link."""
    lines = [[gettext("Document"), *(name for one in grid.columns for name in _headings(one.name))]]
    for row in rows:
        lines.append([row.document])
        for cell, column in zip(row.cells, grid.columns, strict=True):
            quote = cell.result.quote if cell.result else None
            source = f"“{quote}” {link_to(cell)}".strip() if quote else ""
            checks = " ".join([*doubts_in_words(cell), *sentence_in_words(cell)])
            lines[-1] += [in_words(cell, column.type), checks, source]
    return text_of_csv(lines).encode("utf-8-sig")


def text_of_csv(lines: Iterable[Sequence[str]]) -> str:
    """Return lines as CSV in which no cell begins a formula of a spreadsheet."""
    text = StringIO()
    csv.writer(text).writerows([f"'{one}" if one.startswith(FORMULA_STARTS) else one for one in line] for line in lines)
    return text.getvalue()


def as_xlsx(grid: Grid, rows: Sequence[GridRow]) -> bytes:
    """Return a table as XLSX: numbers are numbers, days are dates, and each value is a link to its sentence."""
    from xlsxwriter import Workbook

    file = BytesIO()
    with Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        sheet = book.add_worksheet()
        sheet.set_column(0, len(grid.columns), MAX_WIDTH)
        sheet.write_row(0, 0, [gettext("Document"), *(one.name for one in grid.columns)])
        for line, row in enumerate(rows, 1):
            sheet.write_string(line, 0, row.document)
            if link := link_to(Cell(row.document_id, 0, "done")):
                sheet.write_url(line, 0, link, string=row.document)
            for at, (cell, column) in enumerate(zip(row.cells, grid.columns, strict=True), 1):
                words, doubts, result = in_words(cell, column.type), doubts_in_words(cell), cell.result
                number, look = None if result is None else result.number, {"bg_color": "#ffe9a8"} if doubts else {}
                day = words if result is not None and column.type == "date" and DAY.fullmatch(words) else None
                unit = "" if number is None else unit_of(words)
                if day or unit:
                    look["num_format"] = "yyyy-mm-dd" if day else f'General" {unit}"'
                form = book.add_format(look)
                quote = result.quote if result is not None else None
                sheet.write_string(line, at, words, form)
                if quote and (link := link_to(cell)):
                    sheet.write_url(line, at, link, form, words)
                if tip := " ".join([*doubts, *(sentence_in_words(cell) or filter(None, [quote]))]):
                    sheet.write_comment(line, at, tip)
                if number is not None:
                    sheet.write_number(line, at, number, form)
                elif day:
                    sheet.write_datetime(line, at, date.fromisoformat(day), form)
    return file.getvalue()


FILES = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", as_xlsx),
}
