"""Read ODS and XLS: the cells of each sheet as displayed, and comments."""

import re
from typing import Any

from rag_assistant.extraction.formats.converted import NO_CELLS, unreadable
from rag_assistant.extraction.formats.kinds import ODS, XLS
from rag_assistant.extraction.formats.markup import Span, item, joined
from rag_assistant.extraction.formats.opendocument import refuse_encrypted, rows_in, text_of
from rag_assistant.extraction.formats.packages import Element, Package, attribute, local, number
from rag_assistant.extraction.formats.sheets import MAX_COLUMNS, Sheet, shown
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

MIDNIGHT = re.compile(r"T(?:00:00:00(?:\.0+)?|(\d\d:\d\d:\d\d)(?:\.\d+)?)$")
NOT_VISIBLE = ("collapse", "filter")
# A row or cell that is repeated more often is the empty rest of a sheet.
MAX_REPEATS = 1_000
MAX_ROWS = 1_048_576


def read_ods(package: Package) -> ExtractedText:
    """Return the text of an OpenDocument workbook as Markdown. Raises ExtractionFailed."""
    refuse_encrypted(package)
    blocks, root = list[str](), package.xml("content.xml")
    shown_not = {
        attribute(style, "name")
        for style in root.findall("{*}automatic-styles/{*}style")
        if any(attribute(one, "display") == "false" for one in style)
    }
    for element in root.findall(".//{*}spreadsheet/{*}table"):
        sheet, comments = Sheet(), list[str]()
        place = column = 1
        for one in (one for one in element.iter() if local(one) == "table-column"):
            times = number(attribute(one, "number-columns-repeated"), 1)
            if attribute(one, "visibility") in NOT_VISIBLE:
                sheet.hidden_columns |= set(range(column, min(column + times, MAX_COLUMNS + 1)))
            column = min(column + times, MAX_COLUMNS)
        for row in rows_in(element):
            cells = _cells_of(row, place, sheet, comments)
            times = number(attribute(row, "number-rows-repeated"), 1)
            if any(cells.values()):
                sheet.rows |= {place + n: cells for n in range(min(times, MAX_REPEATS))}
                if attribute(row, "visibility") in NOT_VISIBLE:
                    sheet.hidden_rows |= set(range(place, place + min(times, MAX_REPEATS)))
            place = min(place + times, MAX_ROWS)
        is_hidden = attribute(element, "style-name") in shown_not
        blocks += [*sheet.blocks(attribute(element, "name") or "", is_hidden=is_hidden), *comments]
    return _whole(blocks, ODS)


def _cells_of(row: Element, place: int, sheet: Sheet, comments: list[str]) -> dict[int, str]:
    cells: dict[int, str] = {}
    column = 1
    for cell in row:
        if local(cell) not in ("table-cell", "covered-table-cell"):
            continue
        times = number(attribute(cell, "number-columns-repeated"), 1)
        moment = attribute(cell, "date-value")
        text = MIDNIGHT.sub(lambda match: f" {match[1]}" if match[1] else "", moment) if moment else _lines(cell)
        if text and local(cell) == "table-cell":
            cells |= {column + n: text for n in range(min(times, MAX_REPEATS))}
        comments += [item(0, f"Comment: {_lines(one)}") for one in cell.findall("{*}annotation")]
        across, down = (number(attribute(cell, f"number-{name}-spanned"), 1) for name in ("columns", "rows"))
        if across > 1 or down > 1:
            sheet.merged.append(Span(place, column, place + down - 1, min(column + across - 1, MAX_COLUMNS)))
        column = min(column + times, MAX_COLUMNS)
    return cells


def _lines(element: Element) -> str:
    return " ".join(text_of(line) for line in element.findall("{*}p"))


def read_xls(content: bytes) -> ExtractedText:
    """Return the text of a workbook of Excel 97 to 2003 as Markdown. Raises ExtractionFailed."""
    import xlrd

    try:
        book = xlrd.open_workbook(file_contents=content, formatting_info=True)
    except MemoryError:
        raise
    except Exception as error:  # The library raises anything for a damaged file, AssertionError and struct.error too.
        raise unreadable("workbook", str(error), "XLSX") from error
    blocks = list[str]()
    for one in book.sheets():
        sheet = Sheet()
        for place in range(one.nrows):
            cells = enumerate(zip(one.row_types(place), one.row_values(place), strict=True))
            sheet.rows[place + 1] = {
                column + 1: _stored(book, kind, value, one.cell_xf_index(place, column))
                for column, (kind, value) in cells
            }
        sheet.merged = [Span(top + 1, left + 1, bottom, right) for top, bottom, left, right in one.merged_cells]
        comments = [item(0, f"Comment: {note.text}") for _, note in sorted(one.cell_note_map.items())]
        sheet.hidden_rows = {place + 1 for place, row in one.rowinfo_map.items() if row.hidden}
        sheet.hidden_columns = {column + 1 for column, info in one.colinfo_map.items() if info.hidden}
        blocks += [*sheet.blocks(one.name, is_hidden=one.visibility > 0), *comments]
    return _whole(blocks, XLS)


def _stored(book: Any, kind: int, value: Any, style: int) -> str:
    """Return a cell as displayed, by the kind that the library gives it: 2 is a number, 3 a date."""
    from xlrd import XL_CELL_BOOLEAN, XL_CELL_DATE, XL_CELL_ERROR, XL_CELL_NUMBER, error_text_from_code

    if kind in (XL_CELL_NUMBER, XL_CELL_DATE):
        code = book.format_map[book.xf_list[style].format_key].format_str
        return shown(float(value), code, is_1904=bool(book.datemode))
    if kind == XL_CELL_BOOLEAN:
        return "TRUE" if value else "FALSE"
    return error_text_from_code.get(value, "#N/A") if kind == XL_CELL_ERROR else str(value)


def _whole(blocks: list[str], media_type: str) -> ExtractedText:
    if not any(block for block in blocks if not block.startswith("## ")):
        raise ExtractionFailed(NO_CELLS)
    return ExtractedText(joined(blocks), media_type, markdown=True)
