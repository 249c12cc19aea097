"""A workbook is read as its sheets show it: formats, formulas, merged cells, and what stands beside the cells."""

from pathlib import Path

import pytest

from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.sheets import BUILT_IN, shown
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument
from tests.extraction.archives import PREFIXES, an_opendocument, an_xlsx, relations
from tests.extraction.features import xlsx
from tests.extraction.reading import read
from tests.testkit.shared_data import shared

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATED = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0.0%", 0.075, "7.5%"), ("0%", -0.5, "-50%"), ("00000", 1234, "01234"), ("0.00", 2, "2.00"),
        ("0.##", 2.5, "2.5"),
        ("#,##0", 1234567, "1,234,567"), ("#,##0;[Red](#,##0)", -1250, "(1,250)"), ('"$"#,##0.00', 1234.5, "$1,234.50"),
        ("#,##0.00 [$€-407]", 99.9, "99.90 €"), ('#,##0.0,,"M"', 2_500_000, "2.5M"), ("0.00E+00", 12345, "1.23E+04"),
        ("0\\ kg", 5, "5 kg"), ("_-* #,##0.00 _€_-;-* #,##0.00 _€_-", 1234.5, "1,234.50"), ("#", 0, "0"),
        ("General", 0.1 + 0.2, "0.3"), ("General", 17, "17"), ("General", 1e-7, "1e-07"), ("@", 5, "5"),
        ("# ?/?", 1.5, "1 1/2"), ("# ?/8", 2.375, "2 3/8"), ("?/?", 0.75, "3/4"), ("# ?/?", 2, "2"),
        ("# ?/4", 0.99, "1"),
        ("[<1000]0;0.0", 2500.5, "2500.5"), (";;;", 5, "5"), ("000-000", 123456, "123-456"),
        ("###-####", 4612345, "461-2345"), ("+00 000-0000", 49301234567, "+4930 123-4567"),
        ("000-0000", 12, "000-0012"),
        ('"yes";"yes";"no"', 1, "yes"), ('"yes";"yes";"no"', 0, "no"), ('0.0"x"0', 5, "5"),
        ("yyyy-mm-dd", 46096, "2026-03-15"), ("dd/mm/yyyy", 46096.0, "2026-03-15"), ("mmm yyyy", 46096, "2026-03-15"),
        ("hh:mm", 0.6145833333333334, "14:45"), ("h:mm AM/PM", 0.6145833333333334, "14:45"),
        ("h:mm:ss", 0.25, "06:00:00"),
        ("d.m.yyyy h:mm", 46096.39583333334, "2026-03-15 09:30"), ("[$-407]d. mmmm yyyy", 46096, "2026-03-15"),
        ("[h]:mm", 1.5625, "37:30"), ("[hh]:mm:ss", 1.5625, "37:30:00"), ("[mm]:ss", 0.0625, "90:00"),
        ("yyyy-mm-dd", 3e9, "3000000000"), ("hh:mm", -1, "-1"), ("0", 1e300, f"{1e300:.0f}"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_its_format_shows_it(code: str, value: float, text: str) -> None:
    assert shown(value, code) == text


def sheet(*rows: str, more: str = "") -> str:
    return f"<worksheet {MAIN}><sheetData>{''.join(f'<row>{row}</row>' for row in rows)}</sheetData>{more}</worksheet>"


def text(*texts: str) -> str:
    """Return cells with texts, one after another."""
    return "".join(f'<c t="inlineStr"><is><t>{one}</t></is></c>' for one in texts)


def rows_of(tmp_path: Path, content: str, **parts: str) -> list[str]:
    return read(tmp_path, an_xlsx(content, **parts)).text.split("\n")[2:]


def test_cells_are_read_as_they_are_shown(tmp_path: Path) -> None:
    styles = (
        f'<styleSheet {MAIN}><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/></numFmts><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="164"/><xf numFmtId="14"/><xf numFmtId="9"/></cellXfs></styleSheet>'
    )
    strings = f"<sst {MAIN}><si><r><t>ge</t></r><r><t>ese</t></r><rPh><t>spoken</t></rPh></si></sst>"
    targets = (("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml"), ("sharedStrings", "sharedStrings.xml"))
    parts = {
        "xl/styles.xml": styles, "xl/sharedStrings.xml": strings,
        "xl/_rels/workbook.xml.rels": relations(*targets).replace("<Relationships", f"<Relationships {RELATED}"),
    }  # fmt: skip
    cells = (
        '<c t="s"><v>0</v></c><c s="1"><v>1.5625</v></c><c s="2"><v>46096</v></c><c s="3"><v>0.5</v></c>'
        '<c t="b"><v>1</v></c><c t="e"><v>#REF!</v></c><c t="str"><f>A1</f><v>x</v></c>'
    )
    found = rows_of(tmp_path, sheet(text(*"abcdefg"), cells), **parts)
    assert found[2] == "| geese | 37:30 | 2026-03-15 | 50% | TRUE | #REF! | x |"
    first = read(tmp_path, an_xlsx(sheet(cells, cells), **parts)).text
    parts["xl/workbook.xml"] = read_workbook(date1904="1")
    assert "2030-03-16" in read(tmp_path, an_xlsx(sheet(cells, cells), **parts)).text.replace(first, "")


def read_workbook(date1904: str) -> str:
    relation = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    return (
        f'<workbook {MAIN} {relation}><workbookPr date1904="{date1904}"/><sheets>'
        '<sheet name="Prices" sheetId="1" r:id="r1"/></sheets></workbook>'
    )


def test_a_formula_without_a_result_is_shown_and_told(tmp_path: Path) -> None:
    cells = '<c><v>12</v></c><c><f>A2*2</f><v></v></c><c t="str"><f>IF(1,"","")</f><v></v></c>'
    extracted = read(tmp_path, an_xlsx(sheet(text("a", "b", "c"), cells)))
    assert "| 12 | =A2*2 |  |" in extracted.text
    assert extracted.warning == "Some formulas have no stored result: open and save the workbook to add them."
    stored = sheet(text("a", "b"), "<c><v>12</v></c><c><f>A2*2</f><v>24</v></c>")
    assert read(tmp_path, an_xlsx(stored)).warning is None


def test_a_merged_cell_says_the_same_in_each_place_that_it_covers(tmp_path: Path) -> None:
    merged = '<mergeCells><mergeCell ref="A2:A3"/><mergeCell ref="A1:A1048576"/></mergeCells>'
    rows = [text("region", "visits"), text("Harbour", "14"), '<c/><c t="inlineStr"><is><t>21</t></is></c>']
    found = rows_of(tmp_path, sheet(*rows, more=merged.replace('<mergeCell ref="A1:A1048576"/>', "")))
    assert found[2:] == ["| Harbour | 14 |", "| Harbour | 21 |"]
    read(tmp_path, an_xlsx(sheet(*rows, more=merged)))


def test_a_title_is_said_once_and_a_head_of_two_rows_is_one(tmp_path: Path) -> None:
    rows = [
        text("Visits of the year"),
        text("", "2025", "", "2026", ""),
        text("region", *["Q1", "Q2"] * 2),
        text("Upland", *"1234"),
    ]
    refs = "".join(f'<mergeCell ref="{ref}"/>' for ref in ("A1:E1", "B2:C2", "D2:E2"))
    found = rows_of(tmp_path, sheet(*rows, more=f"<mergeCells>{refs}</mergeCells>"))
    assert found[0].replace(" ", "") == "|Visitsoftheyear|||||"
    assert found[2:] == ["| region | 2025 Q1 | 2025 Q2 | 2026 Q1 | 2026 Q2 |", "| Upland | 1 | 2 | 3 | 4 |"]


def test_what_stands_beside_the_cells_is_told_at_its_sheet(tmp_path: Path) -> None:
    remark = f'<comments {PREFIXES}><comment ref="A3"><text><t>27 Nm</t></text></comment></comments>'
    workbook = read_workbook("0").replace("</sheets>", '<sheet name="Vault" sheetId="2" r:id="r2"/></sheets>')
    parts = {
        "xl/workbook.xml": workbook, "xl/comments/comment1.xml": remark,
        "xl/worksheets/sheet2.xml": sheet(text("safe")),
        "xl/_rels/workbook.xml.rels": relations(
            ("worksheet", "worksheets/sheet1.xml"), ("worksheet", "worksheets/sheet2.xml")
        ).replace("<Relationships", f"<Relationships {RELATED}"),
        "xl/worksheets/_rels/sheet1.xml.rels": relations(("comments", "../comments/comment1.xml")).replace(
            "<Relationships", f"<Relationships {RELATED}"
        ),
    }  # fmt: skip
    found = read(tmp_path, an_xlsx(sheet(text("code", "gasket"), text("a", "b")), **parts)).text
    assert found.index("- Comment on A3: 27 Nm") < found.index("## Vault\n\nsafe")
    assert found.count("27 Nm") == 1


def test_a_sheet_that_breaks_off_has_the_rows_before(tmp_path: Path) -> None:
    content = sheet(text("bird", "number"), text("goose", "17"), text("duck", "18"))
    extracted = read(tmp_path, an_xlsx(content[: content.index("duck")]))
    assert "| goose | 17 |" in extracted.text
    assert extracted.warning == "1 of 1 sheets are damaged: parts are missing."


def test_cells_far_from_each_other_take_no_room_between_them(tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{n}"><c r="{"ABCDEFGHIJ"[n % 10]}{"XYZ"[n % 3]}{n}"><v>{n}</v></c></row>' for n in range(1, 3000)
    )
    wide = f'<c r="XFD1048576"><v>7</v></c><c r="{"Z" * 3}9"><v>8</v></c>'
    content = f"<worksheet {MAIN}><sheetData>{rows}<row>{wide}</row></sheetData></worksheet>"
    assert len(read(tmp_path, an_xlsx(content)).text) < 1_000_000


def test_the_xml_of_excel_2003_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedDocument, match='"birds.xls" isn\'t a supported file type'):
        read(tmp_path, '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>', "birds.xls")


def test_a_page_that_is_called_a_workbook_is_a_page(tmp_path: Path) -> None:
    page = "<table><tr><td>bird</td><td>number</td></tr><tr><td>goose</td><td>17</td></tr></table>"
    assert "| goose | 17 |" in read(tmp_path, page, "birds.xls").text


def test_the_fractions_that_need_no_format_of_their_own_are_known() -> None:
    assert [shown(0.75, BUILT_IN[12]), shown(0.3, BUILT_IN[13])] == ["3/4", "3/10"]


def ods_cell(text: str, properties: str = "", inside: str = "") -> str:
    return f"<table:table-cell {properties}>{inside}<text:p>{text}</text:p></table:table-cell>"


def test_a_workbook_of_opendocument_is_read_as_it_shows_its_cells(tmp_path: Path) -> None:
    times, comment = (
        'table:number-columns-repeated="2"',
        "<office:annotation><text:p>Since May.</text:p></office:annotation>",
    )
    rows = [
        ods_cell("bird", inside=comment) + ods_cell("share") + ods_cell("price") + ods_cell("day") + ods_cell("time"),
        ods_cell("goose", 'table:number-rows-spanned="2"')
        + ods_cell("15.7%", 'office:value-type="percentage" office:value="0.157"')
        + ods_cell("1.499,50 €", 'office:value-type="currency" office:value="1499.5"')
        + ods_cell("15.03.26", 'office:value-type="date" office:date-value="2026-03-15"')
        + ods_cell("37:30", 'office:value-type="time" office:time-value="PT37H30M00S"'),
        "<table:covered-table-cell/>" + ods_cell("7", times)
        + ods_cell("16.03.26 09:05", 'office:value-type="date" office:date-value="2026-03-16T09:05:00.5"')
        + f"<table:table-cell {times}/>",
    ]  # fmt: skip
    empty = '<table:table-cell table:number-columns-repeated="16384"/>'
    rest = f'<table:table-row table:number-rows-repeated="1048000">{empty}'
    sheet = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows) + f"{rest}</table:table-row>"
    body = f'<table:table table:name="Birds">{sheet}</table:table>'
    found = read(tmp_path, an_opendocument("spreadsheet", f"<office:spreadsheet>{body}</office:spreadsheet>"))
    assert (found.media_type, found.text.split("\n")) == (
        kinds.ODS,
        [
            "## Birds", "", "| bird | share | price | day | time |", "| --- | --- | --- | --- | --- |",
            "| goose | 15.7% | 1.499,50 € | 2026-03-15 | 37:30 |", "| goose | 7 | 7 | 2026-03-16 09:05:00 |  |", "",
            "- Comment: Since May.",
        ],
    )  # fmt: skip
    with pytest.raises(ExtractionFailed, match="no text in the cells"):
        read(tmp_path, an_opendocument("spreadsheet", "<office:spreadsheet/>"))


def test_a_workbook_of_excel_97_shows_its_numbers_in_their_formats(tmp_path: Path) -> None:
    found = read(tmp_path, shared("documents/tika/testEXCEL-formats.xls").read_bytes())
    for text in ("1,599.99", "($1,599.99)", "1.98E+08", "2.50%", "2 1/2", "18:15", "2007-05-17", "2008-01-19 04:35"):
        assert f"| {text} |" in found.text
    content = shared("documents/tika/testEXCEL-formats.xls").read_bytes()
    with pytest.raises(ExtractionFailed, match="damaged"):
        read(tmp_path, content[:2000] + b"\xff" * 4000 + content[6000:])


def test_escaped_characters_of_a_cell_are_read_as_excel_shows_them(tmp_path: Path) -> None:
    texts = [
        '<c r="A2" t="inlineStr"><is><r><t>one_x000D_</t></r><r><t>two</t></r><rPh><t>no</t></rPh></is></c>',
        '<c r="B2" t="str"><f>A1</f><v>a_x0009_b _x0041_ _xD800_</v></c>',
        '<c r="C2" t="inlineStr"><is><t>_x005F_x000D_ some_xlsx_</t></is></c>',
    ]
    assert "| one two | a b A | _x000D_ some_xlsx_ |" in read(tmp_path, xlsx("".join(texts))).text
