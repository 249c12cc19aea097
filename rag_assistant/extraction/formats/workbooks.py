"""Read XLSX: the cells of each sheet as displayed, comments, text boxes and charts."""

import io
import re
from collections.abc import Iterator
from functools import cache
from xml.etree import ElementTree

from msgspec import Struct, field

from rag_assistant.extraction.formats import packages
from rag_assistant.extraction.formats.converted import NO_CELLS, read_converted
from rag_assistant.extraction.formats.kinds import XLSX
from rag_assistant.extraction.formats.markup import Span, item, joined
from rag_assistant.extraction.formats.packages import RELATION_ID, Element, Package, attribute, charts_of, local, number
from rag_assistant.extraction.formats.sheets import BUILT_IN, GENERAL, MAX_COLUMNS, Sheet, shown
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

# A character that XML does not allow.
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")


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
            return shown(float(value), code, is_1904=self.is_1904) if kind == "n" else _unescaped(value)
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
        is_hidden = sheet.get("state", "visible") != "visible"
        title, text, hidden = cells.blocks(sheet.get("name", ""), is_hidden=is_hidden)
        broken += not is_whole
        uncounted, has_cells = uncounted or cells.has_uncounted, has_cells or bool(text)
        blocks += [title, text, hidden, *_beside(package, name, read)]
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
    if name not in package.names:
        return sheet, False
    content = package.read(name)
    packages.refuse_entities(content)
    try:
        for _, element in ElementTree.iterparse(io.BytesIO(content)):  # noqa: S314 - bounded, without entities
            if element.tag.endswith("}row"):
                place = number(element.get("r"), place + 1)
                cells, column = {}, 0
                for cell in element:
                    match = REFERENCE.fullmatch(cell.get("r", ""))
                    column = min(_column(match[1]) if match else column + 1, MAX_COLUMNS)
                    cells[column] = text = workbook.cell(cell)
                    # A formula without a result; an empty text is one.
                    is_formula = text[:1] in ("", "=") and cell.get("t") != "str" and cell.find("{*}f") is not None
                    sheet.has_uncounted = sheet.has_uncounted or (is_formula and not cell.findtext("{*}v"))
                sheet.rows[place] = cells
                if element.get("hidden") in ("1", "true"):
                    sheet.hidden_rows.add(place)
                element.clear()
            elif element.tag.endswith("}col") and element.get("hidden") in ("1", "true"):
                first, last = (min(number(element.get(name)), MAX_COLUMNS) for name in ("min", "max"))
                sheet.hidden_columns |= set(range(first, last + 1))
            elif element.tag.endswith("}mergeCell") and len(ends := REFERENCE.findall(element.get("ref", ""))) == 2:
                (left, top), (right, bottom) = ends
                sheet.merged.append(Span(int(top), _column(left), int(bottom), min(_column(right), MAX_COLUMNS)))
    except (ElementTree.ParseError, ValueError, LookupError):
        return sheet, False
    return sheet, True


@cache
def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _rich_text(element: Element) -> str:
    """Return the text of a cell, without phonetic guides."""
    guides = {part for guide in element.iter() if local(guide) == "rPh" for part in guide}
    return _unescaped("".join(part.text or "" for part in element.iter() if local(part) == "t" and part not in guides))


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda match: sign if (sign := chr(int(match[1], 16))).isprintable() else " ", text)


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
    texts = (part.text for part in element.iter() if local(part) in ("t", "text") and part.text)
    return _unescaped(" ".join(texts)).strip()
