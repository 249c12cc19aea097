"""Make one small file of each format with one feature in it."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

from tests.extraction.archives import an_opendocument, an_xlsx, archive, paragraph, relations
from tests.testkit.pdfs import new_pdf

NAMES = ("name", "value")
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def docx_table(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def docx_cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def odt(body: str, styles: str = "") -> bytes:
    return an_opendocument("text", f"<office:text>{body}</office:text>", **{"styles.xml": styles} if styles else {})


def odp(body: str, automatic: str = "") -> bytes:
    whole = an_opendocument("presentation", f"<office:presentation>{body}</office:presentation>")
    return _with(whole, "<office:body>", f"<office:automatic-styles>{automatic}</office:automatic-styles><office:body>")


def ods(cells: str, automatic: str = "", columns: str = "", row: str = "", name: str = 'table:name="S"') -> bytes:
    rows = f"<table:table-row {row}>{cells}</table:table-row>{ods_row('other', 'goose')}"
    table = f"<table:table {name}>{columns}{ods_row('name', 'value')}{rows}</table:table>"
    whole = an_opendocument("spreadsheet", f"<office:spreadsheet>{table}</office:spreadsheet>")
    return _with(whole, "<office:body>", f"<office:automatic-styles>{automatic}</office:automatic-styles><office:body>")


def ods_row(*texts: str) -> str:
    return f"<table:table-row>{''.join(ods_cell(text) for text in texts)}</table:table-row>"


def ods_cell(text: str, attributes: str = "", inside: str = "") -> str:
    return f"<table:table-cell {attributes}>{inside}<text:p>{text}</text:p></table:table-cell>"


def _with(package: bytes, old: str, new: str) -> bytes:
    """Return an OpenDocument file with something else in its content."""
    with zipfile.ZipFile(io.BytesIO(package)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    parts["content.xml"] = parts["content.xml"].replace(old.encode(), new.encode())
    return archive(parts, zipfile.ZIP_STORED)


def rtf(body: str) -> bytes:
    return rb"{\rtf1\ansi\ansicpg1252 " + body.encode() + b"}"


def rtf_row(*cells: str) -> str:
    places = "".join(f"\\cellx{1000 * n}" for n in range(1, len(cells) + 1))
    return f"\\trowd{places} " + "".join(f"{cell}\\cell " for cell in cells) + "\\row"


def pptx_table(*rows: str) -> str:
    return f"<p:graphicFrame><a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in rows)}</a:tbl></p:graphicFrame>"


def pptx_cell(text: str, attributes: str = "") -> str:
    return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"


def xlsx(cell: str, code: str = "", *, row: str = "", columns: str = "", after: str = "", **parts: str) -> bytes:
    """Return a workbook with a row of names, one with this cell and this number format, and one more."""
    names = "".join(
        f'<c r="{at}1" t="inlineStr"><is><t>{text}</t></is></c>' for at, text in zip("AB", NAMES, strict=True)
    )
    head = f'<row r="1">{names}</row>'
    last = '<row r="9"><c r="A9" t="inlineStr"><is><t>other</t></is></c><c r="B9"><v>5</v></c></row>'
    sheet = (
        f'<worksheet xmlns="{MAIN}">{columns}<sheetData>{head}<row r="2" {row}>{cell}</row>{last}</sheetData>{after}'
    )
    styles = (
        f'<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="170" formatCode="{code}"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs></styleSheet>'
    )
    links = relations(("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml"))
    whole = {"xl/styles.xml": styles, "xl/_rels/workbook.xml.rels": links} | parts
    return an_xlsx(f"{sheet}</worksheet>", **whole)


def number(value: str) -> str:
    return f'<c r="A2" s="1"><v>{value}</v></c><c r="B2"><v>1</v></c>'


def xls(write: Callable[[Any, Any], None]) -> bytes:
    """Return a workbook of Excel 97 into which ``write(book, sheet)`` has written."""
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    for place, (name, value) in enumerate([("name", "value"), ("this", 1), ("other", 5)]):
        sheet.write(place, 0, name)
        sheet.write(place, 1, value)
    write(book, sheet)
    kept = io.BytesIO()
    book.save(kept)
    return kept.getvalue()


def xls_number(value: Any, code: str) -> bytes:
    import xlwt

    return xls(lambda _book, sheet: sheet.write(5, 0, value, xlwt.easyxf(num_format_str=code)))


def pdf(draw: Callable[[Any], None]) -> bytes:
    page = new_pdf()
    page.add_page()
    page.set_font("helvetica", size=12)
    draw(page)
    return bytes(page.output())


def page_of(body: str) -> bytes:
    return f"<html><body>{body}</body></html>".encode()


def mail(body: str) -> bytes:
    head = "From: a@example.org\nTo: b@example.org\nSubject: Geese\nMIME-Version: 1.0\nContent-Type: text/html\n\n"
    return head.encode() + page_of(body)


def strike_out(page: Any) -> None:
    with page.highlight("", type="StrikeOut"):
        page.text(20, 40, "ducks")


def hide_cells(_book: Any, sheet: Any) -> None:
    sheet.row(1).hidden = sheet.col(1).hidden = True


def add_hidden_sheet(book: Any, _sheet: Any) -> None:
    other = book.add_sheet("Prices")
    other.write(0, 0, "geese")
    other.visibility = 1
