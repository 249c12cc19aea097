"""Read XLSX, ODS, XLS and Excel 2003 XML: the cells of each sheet as displayed, and comments; of XLSX also drawings."""

import io
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from xml.etree import ElementTree

from msgspec import Struct, field

from rag_assistant.extraction.formats.cell_formats import BUILT_IN, GENERAL, shown
from rag_assistant.extraction.formats.charts import charts_of
from rag_assistant.extraction.formats.converted import NO_CELLS, read_converted, unreadable
from rag_assistant.extraction.formats.kinds import ODS, XLS, XLSX
from rag_assistant.extraction.formats.markup import Span, heading, item, joined, spread, table
from rag_assistant.extraction.formats.opendocument import refuse_encrypted, rows_in, text_of
from rag_assistant.extraction.formats.packages import (
    ENTITIES,
    RELATION_ID,
    Element,
    Package,
    attribute,
    local,
    number,
    parsed,
)
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
MAX_COLUMNS = 16_384
# Larger, sparse sheets are read without their empty cells.
MAX_PLACES = 2_000_000


class Sheet(Struct):
    """The cells of a sheet by row and column, counted from 1, and the merged ones."""

    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[Span] = field(default_factory=list)
    has_uncounted: bool = False

    def text(self) -> str:
        """Return the sheet as a table, without empty rows and columns."""
        places = sorted(self.rows)
        columns = sorted({column for row in self.rows.values() for column, text in row.items() if text})
        if len(places) * len(columns) > MAX_PLACES:
            return table([[row[column] for column in sorted(row) if row[column]] for row in self.rows.values()])
        for span in self.merged:
            # A column covered only by a merged cell still exists.
            columns = sorted({*columns, *(span.columns if span.left in columns else ())})
        row_of, column_of = ({place: n for n, place in enumerate(one)} for one in (places, columns))
        spans = [span.within(row_of, column_of) for span in self.merged]
        rows = [[self.rows[place].get(column, "") for column in columns] for place in places]
        rows = spread(rows, [span for span in spans if span is not None])
        return table(rows) if len(rows) > 1 else " ".join(text for row in rows for text in row if text)


class Workbook(Struct):
    """Shared by all sheets: texts by number, and formats by style number."""

    strings: list[str] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    is_1904: bool = False

    def cell(self, cell: Element) -> str:
        """Return a cell's displayed text; for a formula without a stored result, the formula."""
        kind, style = cell.get("t", "n"), cell.get("s", "0")
        value = next((part.text or "" for part in cell if part.tag.endswith("}v")), "")
        if kind == "inlineStr":
            return _rich_text(cell)
        if kind == "s":
            return self.strings[int(value)] if value.isdigit() and int(value) < len(self.strings) else ""
        if kind == "b" and value:
            return "TRUE" if value == "1" else "FALSE"
        if not value and kind != "str":
            formula = cell.findtext("{*}f")
            return f"={formula}" if formula else ""
        try:
            code = self.formats[int(style)] if int(style) < len(self.formats) else GENERAL
            return shown(float(value), code, is_1904=self.is_1904) if kind == "n" else value
        except (ValueError, OverflowError):
            return value


def read_xlsx(package: Package, content: bytes) -> ExtractedText:
    """Return the text of a workbook as Markdown. Raises ExtractionFailed."""
    main = package.main_part()
    if main.endswith(".bin"):
        return read_converted(content, XLSX)
    relations = package.relations(main)
    workbook, root = _workbook(package, relations), package.xml(main)
    workbook.is_1904 = any(attribute(part, "date1904") in ("1", "true") for part in root)
    blocks, read, broken, uncounted, has_cells = list[str](), set[str](), 0, False, False
    sheets = root.findall("{*}sheets/*")
    for sheet in sheets:
        kind, name = relations.get(sheet.get(RELATION_ID, ""), ("", ""))
        cells, is_whole = _cells(package, name, workbook) if kind == "worksheet" else (Sheet(), True)
        text = cells.text()
        broken += not is_whole
        uncounted, has_cells = uncounted or cells.has_uncounted, has_cells or bool(text)
        blocks += [heading(2, sheet.get("name", "")), text, *_beside(package, name, read)]
    beside = [block for name in _parts_beside(package) if name not in read for block in _said_in(package, name)]
    if broken and not has_cells and broken == len(sheets):
        raise ExtractionFailed("This workbook is damaged: none of its sheets can be read.")
    if not has_cells and not any(beside) and not read:
        raise ExtractionFailed(NO_CELLS)
    warnings = [f"{broken} of {len(sheets)} sheets are damaged: parts are missing."] if broken else []
    warnings += ["Some formulas have no stored result: open and save the workbook to add them."] if uncounted else []
    return ExtractedText(joined([*blocks, *beside]), XLSX, markdown=True, warning=" ".join(warnings) or None)


def _workbook(package: Package, relations: dict[str, tuple[str, str]]) -> Workbook:
    workbook = Workbook()
    for kind, name in relations.values():
        root = package.optional(name) if kind in ("sharedStrings", "styles") else None
        if root is not None and kind == "sharedStrings":
            workbook.strings = [_rich_text(one) for one in root.findall("{*}si")]
        elif root is not None:
            codes = {part.get("numFmtId"): part.get("formatCode", "") for part in root.findall(".//{*}numFmt")}
            ids = [one.get("numFmtId", "0") for one in root.findall("{*}cellXfs/*")]
            workbook.formats = [codes.get(one) or BUILT_IN.get(number(one), GENERAL) for one in ids]
    return workbook


def _cells(package: Package, name: str, workbook: Workbook) -> tuple[Sheet, bool]:
    """Return the cells of a sheet, and whether these are all; a truncated one has those before."""
    sheet, place = Sheet(), 0
    try:
        content = package.read(name)
        if b"<!ENTITY" in content.replace(b"\0", b""):
            raise ExtractionFailed(ENTITIES)
        for _, element in ElementTree.iterparse(io.BytesIO(content)):  # noqa: S314 - bounded, without entities
            if element.tag.endswith("}row"):
                place = number(element.get("r"), place + 1)
                cells, column = {}, 0
                for cell in element:
                    match = REFERENCE.fullmatch(cell.get("r", ""))
                    column = min(_column(match[1]) if match else column + 1, MAX_COLUMNS)
                    cells[column] = text = workbook.cell(cell)
                    sheet.has_uncounted = sheet.has_uncounted or (text[:1] in ("", "=") and _is_uncounted(cell))
                sheet.rows[place] = cells
                element.clear()
            elif element.tag.endswith("}mergeCell") and len(ends := REFERENCE.findall(element.get("ref", ""))) == 2:
                (left, top), (right, bottom) = ends
                sheet.merged.append(Span(int(top), _column(left), int(bottom), min(_column(right), MAX_COLUMNS)))
    except (ElementTree.ParseError, ValueError, LookupError):
        return sheet, False
    except ExtractionFailed as error:
        if str(error) == ENTITIES or name in package.names:
            raise
        return sheet, False
    return sheet, True


def _is_uncounted(cell: Element) -> bool:
    """Return whether a cell has a formula without a result; an empty text is one."""
    return cell.get("t") != "str" and cell.find("{*}f") is not None and not cell.findtext("{*}v")


@cache
def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _rich_text(element: Element) -> str:
    """Return the text of a cell, without phonetic guides."""
    texts = [_rich_text(part) if local(part) != "t" else part.text or "" for part in element if local(part) != "rPh"]
    return "".join(texts)


def _beside(package: Package, name: str, read: set[str]) -> Iterator[str]:
    """Yield what belongs to a sheet or its drawing: comments, text boxes, charts. Parts are added to ``read``."""
    for _, part in package.relations(name).values():
        if part in _parts_beside(package) and part not in read:
            read.add(part)
            yield from _said_in(package, part)
            yield from _beside(package, part, read)


def _parts_beside(package: Package) -> list[str]:
    starts = ("xl/comments", "xl/threadedComments/", "xl/drawings/drawing", "xl/charts/chart")
    return sorted(name for name in package.names if name.startswith(starts) and name.endswith(".xml"))


def _said_in(package: Package, name: str) -> Iterator[str]:
    root = package.optional(name)
    if root is None:
        return
    if name.startswith("xl/charts/"):
        yield from charts_of([root])
    for element in root.iter():
        if local(element) == "txBody":
            yield " ".join(_texts(element).split())
        # Newer comments are stored twice; the older form is skipped.
        text = _texts(element) if local(element) in ("comment", "threadedComment") else ""
        if text and not text.startswith("[Threaded comment]"):
            yield item(0, f"Comment on {element.get('ref', 'a cell')}: {text}")


def _texts(element: Element) -> str:
    return " ".join(part.text for part in element.iter() if local(part) in ("t", "text") and part.text).strip()


# Excel 2003's named formats.
NAMED_FORMATS = {"Percent": "0.00%", "Standard": "#,##0.00", "Fixed": "0.00"}
MIDNIGHT = re.compile(r"T(?:00:00:00(?:\.0+)?|(\d\d:\d\d:\d\d)(?:\.\d+)?)$")
# A row or cell that is repeated more often is the empty rest of a sheet.
MAX_REPEATS = 1_000
MAX_ROWS = 1_048_576


def read_ods(package: Package) -> ExtractedText:
    """Return the text of an OpenDocument workbook as Markdown. Raises ExtractionFailed."""
    refuse_encrypted(package)
    blocks = list[str]()
    for element in package.xml("content.xml").findall(".//{*}spreadsheet/{*}table"):
        sheet, comments = Sheet(), list[str]()
        place = 1
        for row in rows_in(element):
            cells = _cells_of(row, place, sheet, comments)
            times = number(attribute(row, "number-rows-repeated"), 1)
            if any(cells.values()):
                sheet.rows |= {place + n: cells for n in range(min(times, MAX_REPEATS))}
            place = min(place + times, MAX_ROWS)
        blocks += [heading(2, attribute(element, "name") or ""), sheet.text(), *comments]
    return _whole(blocks, ODS)


def _cells_of(row: Element, place: int, sheet: Sheet, comments: list[str]) -> dict[int, str]:
    cells: dict[int, str] = {}
    column = 1
    for cell in row:
        if local(cell) not in ("table-cell", "covered-table-cell"):
            continue
        times = number(attribute(cell, "number-columns-repeated"), 1)
        text = "" if local(cell) == "covered-table-cell" else _displayed(cell)
        if text:
            cells |= {column + n: text for n in range(min(times, MAX_REPEATS))}
        comments += [item(0, f"Comment: {_lines(one)}") for one in cell.findall("{*}annotation")]
        across, down = (number(attribute(cell, f"number-{name}-spanned"), 1) for name in ("columns", "rows"))
        if across > 1 or down > 1:
            sheet.merged.append(Span(place, column, place + down - 1, min(column + across - 1, MAX_COLUMNS)))
        column = min(column + times, MAX_COLUMNS)
    return cells


def _displayed(cell: Element) -> str:
    moment = attribute(cell, "date-value")
    return MIDNIGHT.sub(_time_of, moment) if moment else _lines(cell)


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
        blocks += [heading(2, one.name), sheet.text(), *comments]
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


def read_excel_2003(content: bytes) -> ExtractedText:
    """Return the text of a workbook that is one XML file. Raises ExtractionFailed."""
    root, blocks = parsed(content), list[str]()
    formats = {
        attribute(style, "ID"): NAMED_FORMATS.get(code, code)
        for style in root.iter()
        if local(style) == "Style"
        for part in style
        if local(part) == "NumberFormat" and (code := attribute(part, "Format"))
    }
    for worksheet in root.findall("{*}Worksheet"):
        sheet, place = Sheet(), 0
        for row in worksheet.findall(".//{*}Row"):
            place, column = number(attribute(row, "Index"), place + 1), 0
            for cell in row.findall("{*}Cell"):
                column = min(number(attribute(cell, "Index"), column + 1), MAX_COLUMNS)
                across, down = (number(attribute(cell, name)) for name in ("MergeAcross", "MergeDown"))
                data = cell.find("{*}Data")
                if data is not None:
                    sheet.rows.setdefault(place, {})[column] = _data(data, formats.get(attribute(cell, "StyleID")))
                if across or down:
                    sheet.merged.append(Span(place, column, place + down, min(column + across, MAX_COLUMNS)))
                column = min(column + across, MAX_COLUMNS)
        blocks += [heading(2, attribute(worksheet, "Name") or ""), sheet.text()]
    return _whole(blocks, XLS)


def _data(data: Element, code: str | None) -> str:
    text, kind = "".join(data.itertext()), attribute(data, "Type")
    if kind == "DateTime":
        return MIDNIGHT.sub(_time_of, text).removeprefix("1899-12-31 ")
    try:
        return shown(float(text), code or GENERAL) if kind == "Number" else text
    except (ValueError, OverflowError):
        return text


def _time_of(match: re.Match[str]) -> str:
    return f" {match[1]}" if match[1] else ""


def _whole(blocks: list[str], media_type: str) -> ExtractedText:
    if not any(block for block in blocks if not block.startswith("## ")):
        raise ExtractionFailed(NO_CELLS)
    return ExtractedText(joined(blocks), media_type, markdown=True)
