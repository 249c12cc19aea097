"""What is read of which format: a file for each feature of each format; documents.md's table is made from this."""

from pathlib import Path

import pytest

from tests.extraction.archives import a_docx, a_pptx, paragraph, relations, shape
from tests.extraction.features import (
    add_hidden_sheet,
    docx_cell,
    docx_table,
    hide_cells,
    mail,
    number,
    odp,
    ods,
    ods_cell,
    odt,
    page_of,
    pdf,
    pptx_cell,
    pptx_table,
    rtf,
    rtf_row,
    strike_out,
    xls,
    xls_number,
    xlsx,
)
from tests.extraction.reading import read

FORMATS = ("DOCX", "ODT", "RTF", "PPTX", "ODP", "XLSX", "ODS", "XLS", "PDF", "HTML", "EML")
# Whether a feature is read as displayed, read and marked as what it is, or not read.
READ, MARKED, NOT_READ = "✓", "✎", "-"
# A file, and what its text contains; of what is not read, what it does not contain.
Cell = tuple[str, bytes, str]
MERGED = "| bird | number |\n| --- | --- |\n| goose | 1 |\n| goose | 2 |"
TABLE = MERGED.rpartition("\n")[0]
ODF_TABLE = (
    "<table:table><table:table-row>{}{}</table:table-row><table:table-row>"
    '<table:table-cell table:number-rows-spanned="2"><text:p>goose</text:p></table:table-cell>{}</table:table-row>'
    "<table:table-row><table:covered-table-cell/>{}</table:table-row></table:table>"
).format(*(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("bird", "number", "1", "2")))
PAGE_TABLE = "<table><tr><th>bird<th>number</tr><tr><td rowspan=2>goose<td>1</tr><tr><td>2</tr></table>"
NOTE = (
    '<text:p>A goose<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
    "<text:p>or two</text:p></text:note-body></text:note> hisses</text:p>"
)
ODF_COMMENT = "<office:annotation><text:p>why</text:p></office:annotation>"
ODF_LINK = '<text:p><text:a xlink:href="http://example.org/" xmlns:xlink="x">geese</text:a></text:p>'
ODF_LIST = "<text:list text:style-name='L'><text:list-item text:start-value='7'><text:p>geese</text:p></text:list-item></text:list>"
LIST_STYLE = (
    "<text:list-style xmlns:text='t' xmlns:style='s' style:name='L'>"
    "<text:list-level-style-number text:level='1' style:num-format='1' style:num-suffix='.'/></text:list-style>"
)
COMMENTS = "<w:comments XMLNS><w:comment w:id='1' w:author='Mara'>" + paragraph("why") + "</w:comment></w:comments>"
SLIDE_TABLE = pptx_table(
    pptx_cell("bird") + pptx_cell("number"),
    pptx_cell("goose", 'rowSpan="2"') + pptx_cell("1"),
    pptx_cell("", 'vMerge="1"') + pptx_cell("2"),
)
NUMBERED = "<w:abstractNum w:abstractNumId='1'><w:lvl w:ilvl='0'><w:start w:val='7'/><w:lvlText w:val='%1.'/></w:lvl>"
NUMBERED = f"<w:numbering XMLNS>{NUMBERED}</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='1'/></w:num></w:numbering>"
BOX = "<w:p><w:r><w:txbxContent><w:p><w:r><w:t>geese</w:t></w:r></w:p></w:txbxContent></w:r></w:p>"
SLIDE = "ppt/slides/_rels/slide1.xml.rels"
DRAWING = "<xdr:x xmlns:xdr='x'><xdr:txBody xmlns:a='a'><a:t>geese</a:t></xdr:txBody></xdr:x>"

CELLS: dict[str, dict[str, Cell]] = {
    "names of columns": {
        "DOCX": (READ, a_docx(docx_table(docx_cell("bird") + docx_cell("number"), docx_cell("goose") + docx_cell("1"))),
                 TABLE),
        "ODT": (READ, odt(ODF_TABLE), TABLE),
        "RTF": (READ, rtf(rtf_row("bird", "number") + rtf_row("goose", "1")), TABLE),
        "PPTX": (READ, a_pptx(SLIDE_TABLE), TABLE),
        "ODP": (READ, odp(f"<draw:page>{ODF_TABLE}</draw:page>"), TABLE),
        "XLSX": (READ, xlsx(number("7")), "| name | value |\n| --- | --- |\n| 7 | 1 |"),
        "ODS": (READ, ods(ods_cell("7")), "| name | value |\n| --- | --- |\n| 7 |"),
        "XLS": (READ, xls(lambda _book, _sheet: None), "| name | value |\n| --- | --- |\n| this | 1 |"),
        "PDF": (NOT_READ, pdf(lambda page: page.text(20, 20, "bird   number")), "| bird |"),
        "HTML": (READ, page_of(PAGE_TABLE), TABLE),
        "EML": (READ, mail(PAGE_TABLE), TABLE),
    },
    "merged cells, in each row": {
        "DOCX": (READ, a_docx(docx_table(
            docx_cell("bird") + docx_cell("number"),
            docx_cell("goose", '<w:vMerge w:val="restart"/>') + docx_cell("1"),
            docx_cell("", "<w:vMerge/>") + docx_cell("2"),
        )), MERGED),
        "ODT": (READ, odt(ODF_TABLE), MERGED),
        "RTF": (NOT_READ, rtf(rtf_row("bird", "number") + "\\trowd\\clvmgf\\cellx1000\\cellx2000 goose\\cell 1\\cell\\row"
                              "\\trowd\\clvmrg\\cellx1000\\cellx2000 \\cell 2\\cell\\row"), "| goose | 2 |"),
        "PPTX": (READ, a_pptx(SLIDE_TABLE), MERGED),
        "ODP": (READ, odp(f"<draw:page>{ODF_TABLE}</draw:page>"), MERGED),
        "XLSX": (READ, xlsx('<c r="A2" t="str"><v>goose</v></c><c r="B2"><v>1</v></c></row><row r="3"><c r="B3"><v>2</v></c>',
                            after='<mergeCells><mergeCell ref="A2:A3"/></mergeCells>'), "| goose | 1 |\n| goose | 2 |"),
        "ODS": (READ, ods(ods_cell("goose", 'table:number-rows-spanned="2"') + ods_cell("1")), "| goose | goose |"),
        "XLS": (READ, xls(lambda _book, sheet: sheet.write_merge(5, 6, 0, 0, "goose") or sheet.write(6, 1, 2)), "| goose | 2 |"),
        "HTML": (READ, page_of(PAGE_TABLE), MERGED),
        "EML": (READ, mail(PAGE_TABLE), MERGED),
    },
    "percentages": {
        "XLSX": (READ, xlsx(number(".157"), "0.0%"), "| 15.7% |"),
        "ODS": (READ, ods(ods_cell("15.7%", 'office:value-type="percentage" office:value="0.157"')), "| 15.7% |"),
        "XLS": (READ, xls_number(0.157, "0.0%"), "| 15.7% |"),
    },
    "currency": {
        "XLSX": (READ, xlsx(number("1234.5"), "#,##0.00 &quot;kr&quot;"), "| 1,234.50 kr |"),
        "ODS": (READ, ods(ods_cell("1.234,50 €", 'office:value-type="currency" office:value="1234.5"')), "| 1.234,50 € |"),
        "XLS": (READ, xls_number(1234.5, '#,##0.00 "kr"'), "| 1,234.50 kr |"),
    },
    "dates, in ISO 8601": {
        "XLSX": (READ, xlsx(number("46096"), "d.m.yy"), "| 2026-03-15 |"),
        "ODS": (READ, ods(ods_cell("15.3.26", 'office:value-type="date" office:date-value="2026-03-15"')), "| 2026-03-15 |"),
        "XLS": (READ, xls_number(46096, "d.m.yy"), "| 2026-03-15 |"),
    },
    "durations": {
        "XLSX": (READ, xlsx(number("1.5625"), "[h]:mm"), "| 37:30 |"),
        "ODS": (READ, ods(ods_cell("37:30", 'office:value-type="time" office:time-value="PT37H30M00S"')), "| 37:30 |"),
        "XLS": (READ, xls_number(1.5625, "[h]:mm"), "| 37:30 |"),
    },
    "leading zeros": {
        "XLSX": (READ, xlsx(number("742"), "00000"), "| 00742 |"),
        "ODS": (READ, ods(ods_cell("00742", 'office:value-type="float" office:value="742"')), "| 00742 |"),
        "XLS": (READ, xls_number(742, "00000"), "| 00742 |"),
    },
    "booleans": {
        "XLSX": (READ, xlsx('<c r="A2" t="b"><v>1</v></c>'), "| TRUE |"),
        "ODS": (READ, ods(ods_cell("TRUE", 'office:value-type="boolean" office:boolean-value="true"')), "| TRUE |"),
        "XLS": (READ, xls_number(True, "General"), "| TRUE |"),
    },
    "errors": {
        "XLSX": (READ, xlsx('<c r="A2" t="e"><v>#DIV/0!</v></c>'), "| #DIV/0! |"),
        "ODS": (READ, ods(ods_cell("#DIV/0!")), "| #DIV/0! |"),
        "XLS": (READ, xls(lambda _book, sheet: sheet.row(5).set_cell_error(0, "#DIV/0!")), "| #DIV/0! |"),
    },
    "hidden rows, columns": {
        "XLSX": (MARKED, xlsx(number("7"), row='hidden="1"', columns='<cols><col min="2" max="3" hidden="1"/></cols>'),
                 "Hidden in this sheet: row 2, column B."),
        "ODS": (MARKED, ods(ods_cell("7"), row='table:visibility="collapse"', columns='<table:table-column/>'
                            '<table:table-column table:visibility="collapse"/>'), "Hidden in this sheet: row 2, column B."),
        "XLS": (MARKED, xls(hide_cells),
                "Hidden in this sheet: row 2, column B."),
    },
    "hidden sheets, slides": {
        "PPTX": (MARKED, a_pptx(f"<p:sld xmlns:p='p' xmlns:a='a' show='0'>{shape('geese')}</p:sld>".encode()),
                 "(This slide is hidden.)\n\ngeese"),
        "ODP": (MARKED, odp('<draw:page draw:style-name="d"><draw:text-box><text:p>geese</text:p></draw:text-box></draw:page>',
                            '<s:style xmlns:s="s" s:name="d"><s:p presentation:visibility="hidden"/></s:style>'),
                "(This slide is hidden.)\n\ngeese"),
        "XLSX": (MARKED, xlsx(number("7"), **{"xl/workbook.xml":
                 '<workbook xmlns="m" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
                 '<sheet name="Prices" state="hidden" r:id="r1"/></sheets></workbook>'}), "## Prices (hidden)\n\n| name |"),
        "ODS": (MARKED, ods(ods_cell("7"), '<s:style xmlns:s="s" s:name="t"><s:p table:display="false"/></s:style>',
                            name='table:name="Prices" table:style-name="t"'), "## Prices (hidden)\n\n| name |"),
        "XLS": (MARKED, xls(add_hidden_sheet), "## Prices (hidden)\n\ngeese"),
    },
    "comments": {
        "DOCX": (MARKED, a_docx(paragraph("geese"), comments=COMMENTS), "Comment by Mara: why"),
        "ODT": (MARKED, odt(f"<text:p>geese{ODF_COMMENT} hiss</text:p>"), "geese (why) hiss"),
        "RTF": (MARKED, rtf("geese{\\*\\atnauthor Mara}{\\*\\annotation why}"), "Comment by Mara: why"),
        "PPTX": (MARKED, a_pptx(shape("geese"), **{
            SLIDE: relations(("comments", "../comments/c.xml")),
            "ppt/comments/c.xml": "<p:l xmlns:p='p'><p:cm><p:text>why</p:text></p:cm></p:l>",
        }), "Comment: why"),
        "ODP": (MARKED, odp(f"<draw:page>{ODF_COMMENT}</draw:page>"), "why"),
        "XLSX": (MARKED, xlsx(number("7"), **{"xl/comments1.xml":
                 "<comments><commentList><comment ref='A2'><text><t>why</t></text></comment></commentList></comments>"}),
                 "Comment on A2: why"),
        "ODS": (MARKED, ods(ods_cell("7", inside=ODF_COMMENT)), "Comment: why"),
        "PDF": (MARKED, pdf(lambda page: page.text_annotation(x=20, y=20, text="why") and None), "Comment: why"),
    },
    "notes of slides": {
        "PPTX": (MARKED, a_pptx(shape("geese"), **{SLIDE: relations(("notesSlide", "../n.xml")), "ppt/n.xml":
                 f"<p:n xmlns:p='p' xmlns:a='a'>{shape('why', 'body')}</p:n>"}), "Notes: why"),
        "ODP": (MARKED, odp("<draw:page><presentation:notes><text:p>why</text:p></presentation:notes></draw:page>"), "Notes: why"),
    },
    "text that was deleted": {
        "DOCX": (NOT_READ, a_docx("<w:p><w:r><w:t>geese</w:t></w:r><w:del><w:r><w:delText>ducks</w:delText></w:r></w:del></w:p>"),
                 "ducks"),
        "ODT": (NOT_READ, odt("<text:tracked-changes><text:p>ducks</text:p></text:tracked-changes><text:p>geese</text:p>"), "ducks"),
        "RTF": (NOT_READ, rtf("geese {\\deleted ducks}"), "ducks"),
        "PDF": (MARKED, pdf(strike_out), "Comment on “ducks”: struck out"),
    },
    "text that was inserted": {
        "DOCX": (READ, a_docx("<w:p><w:ins><w:r><w:t>geese</w:t></w:r></w:ins></w:p>"), "geese"),
        "ODT": (READ, odt("<text:p><text:change-start/>geese<text:change-end/></text:p>"), "geese"),
        "RTF": (READ, rtf("{\\revised geese}"), "geese"),
    },
    "footnotes": {
        "DOCX": (MARKED, a_docx("<w:p><w:r><w:t>geese</w:t></w:r><w:r><w:footnoteReference w:id='2'/></w:r></w:p>",
                 footnotes="<w:footnotes XMLNS><w:footnote w:id='2'>" + paragraph("or two") + "</w:footnote></w:footnotes>"),
                 "geese[^2]\n\n[^2]: or two"),
        "ODT": (MARKED, odt(NOTE), "A goose (or two) hisses"),
        "RTF": (READ, rtf("geese{\\footnote or two} hiss"), "[^1]: or two"),
        "HTML": (READ, page_of("<p>geese<a href='#n'>1</a></p><p id=n>or two</p>"), "or two"),
        "EML": (READ, mail("<p>geese<a href='#n'>1</a></p><p id=n>or two</p>"), "or two"),
    },
    "numbers of lists": {
        "DOCX": (READ, a_docx(paragraph("geese", "<w:numPr><w:ilvl w:val='0'/><w:numId w:val='1'/></w:numPr>"), numbering=NUMBERED),
                 "7. geese"),
        "ODT": (READ, odt(ODF_LIST, LIST_STYLE), "7. geese"),
        "RTF": (READ, rtf("{\\listtext 7.\\tab}geese"), "7. geese"),
        "PPTX": (READ, a_pptx(shape("geese", "body").replace("<a:p>", "<a:p><a:pPr><a:buAutoNum startAt='7'/></a:pPr>")), "7. geese"),
        "ODP": (READ, odp(f"<draw:page>{ODF_LIST}</draw:page>", LIST_STYLE), "7. geese"),
        "HTML": (READ, page_of("<ol start=7><li>geese</ol>"), "7. geese"),
        "EML": (READ, mail("<ol start=7><li>geese</ol>"), "7. geese"),
    },
    "text boxes": {
        "DOCX": (READ, a_docx(BOX), "geese"),
        "ODT": (READ, odt("<text:p><draw:frame><draw:text-box><text:p>geese</text:p></draw:text-box></draw:frame></text:p>"), "geese"),
        "RTF": (READ, rtf("x{\\shp{\\*\\shpinst{\\shptxt geese\\par}}}"), "geese"),
        "PPTX": (READ, a_pptx(shape("geese")), "geese"),
        "ODP": (READ, odp("<draw:page><draw:text-box><text:p>geese</text:p></draw:text-box></draw:page>"), "geese"),
        "XLSX": (READ, xlsx(number("7"), **{"xl/drawings/drawing1.xml": DRAWING}), "geese"),
        "ODS": (NOT_READ, ods(ods_cell("7", inside="<draw:frame><draw:text-box><text:p>geese</text:p></draw:text-box></draw:frame>")),
                "geese"),
    },
    "headers and footers": {
        "DOCX": (READ, a_docx(paragraph("geese"), header1=f"<w:hdr XMLNS>{paragraph('above')}</w:hdr>"), "above"),
        "ODT": (READ, odt("<text:p>geese</text:p>", "<s:x xmlns:s='s' xmlns:text='t'><s:header><text:p>above</text:p></s:header></s:x>"),
                "above"),
        "RTF": (READ, rtf("{\\header above}geese"), "above"),
        "HTML": (NOT_READ, page_of("<header>above</header><p>" + "Geese hiss at everybody. " * 9 + "</p>"), "above"),
    },
    "signs of symbol fonts": {
        "DOCX": (READ, a_docx("<w:p><w:r><w:sym w:font='Wingdings' w:char='F0FC'/><w:t> geese</w:t></w:r></w:p>"), "✓ geese"),
    },
    "targets of links": {
        "DOCX": (NOT_READ, a_docx("<w:p><w:hyperlink r:id='r1'><w:r><w:t>geese</w:t></w:r></w:hyperlink></w:p>",
                 **{"_rels/document": relations(("hyperlink", "http://example.org/"))}), "example.org"),
        "ODT": (NOT_READ, odt(ODF_LINK), "example.org"),
        "RTF": (NOT_READ, rtf('{\\field{\\*\\fldinst{HYPERLINK "http://example.org/"}}{\\fldrslt geese}}'), "example.org"),
        "ODP": (NOT_READ, odp(f"<draw:page>{ODF_LINK}</draw:page>"), "example.org"),
        "PDF": (NOT_READ, pdf(lambda page: page.cell(text="geese", link="http://example.org/")), "example.org"),
        "HTML": (NOT_READ, page_of("<a href='http://example.org/'>geese</a>"), "example.org"),
        "EML": (NOT_READ, mail("<a href='http://elsewhere.test/'>geese</a>"), "elsewhere.test"),
    },
}  # fmt: skip


@pytest.mark.parametrize(("feature", "kind"), [(feature, kind) for feature, cells in CELLS.items() for kind in cells])
def test_a_feature_of_a_format_is_read_as_the_documents_say(tmp_path: Path, feature: str, kind: str) -> None:
    how, content, words = CELLS[feature][kind]
    text = read(tmp_path, content).text
    assert (words in text) == (how != NOT_READ), text


def features_table() -> str:
    """Return what is read of which format, as a table in Markdown."""
    rows = [["", *FORMATS], ["---"] * (1 + len(FORMATS))]
    rows += [
        [feature, *(cells[kind][0] if kind in cells else "" for kind in FORMATS)] for feature, cells in CELLS.items()
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
