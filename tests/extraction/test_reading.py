"""What is recognised by its content, and what of each kind survives being read."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.extraction.formats import kinds
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed
from tests.extraction.archives import (
    PREFIXES,
    a_docx,
    a_pptx,
    a_sheet,
    an_epub,
    an_opendocument,
    an_xlsx,
    archive,
    paragraph,
    relations,
    shape,
)
from tests.extraction.reading import read
from tests.testkit.pdfs import new_pdf
from tests.testkit.shared_data import shared

FILES = Path(__file__).parent / "files"
MAIL = (
    b"From: Ann <ann@example.org>\r\nTo: bob@example.org\r\nSubject: Geese\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"Seventeen caf=E9 geese.\r\n"
    b'--b\r\nContent-Type: application/pdf; name="list.pdf"\r\nContent-Disposition: attachment; '
    b'filename="list.pdf"\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n--b--\r\n'
)
PAGE = (
    "<!doctype html><html><head><title>Birds</title><meta name=description content=secret><style>p{}</style>"
    "</head><body><script>var n=1</script><h2>Geese</h2><p>A <b>goose</b> hisses.</p><ul><li>one</li></ul>"
    "<table><tr><th>bird</th><th>number</th></tr><tr><td>goose</td><td>17</td></tr></table>"
    '<img src="data:x" alt="A goose"></body></html>'
)


def read_file(tmp_path: Path, name: str) -> ExtractedText:
    return read(tmp_path, (FILES / name).read_bytes(), "no name that helps")


def test_a_docx_keeps_headings_lists_tables_boxes_notes_and_equations(tmp_path: Path) -> None:
    box = (
        "<w:p><w:r><w:t>Beside </w:t><mc:AlternateContent><mc:Choice><w:txbxContent>"
        f"{paragraph('Boxed.')}</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>{paragraph('Boxed.')}"
        "</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    one, two = (f"<m:r><m:t>{number}</m:t></m:r>" for number in (1, 2))
    half = f"<w:p><m:oMath><m:f><m:num>{one}</m:num><m:den>{two}</m:den></m:f></m:oMath></w:p>"
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("goose", "a|b"))
    body = (
        paragraph("Geese", '<w:pStyle w:val="berschrift2"/>')
        + paragraph("first", '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="3"/></w:numPr>')
        + f"<w:tbl><w:tr>{cells}</w:tr><w:sdt><w:sdtContent><w:tr>{cells}</w:tr></w:sdtContent></w:sdt></w:tbl>"
        + box
        + half
        + "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>"
    )
    extracted = read(
        tmp_path,
        a_docx(
            body,
            styles='<w:styles XMLNS><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style></w:styles>',
            header1=f"<w:hdr XMLNS>{paragraph('Confidential')}</w:hdr>",
            header2=f"<w:hdr XMLNS>{paragraph('Confidential')}</w:hdr>",
            footnotes=f'<w:footnotes XMLNS><w:footnote w:id="2">{paragraph("Noted.")}</w:footnote></w:footnotes>',
            comments=f'<w:comments XMLNS><w:comment w:author="Ann">{paragraph("Why?")}</w:comment></w:comments>',
        ),
    )
    assert (extracted.media_type, extracted.markdown, extracted.warning) == (kinds.DOCX, True, None)
    assert extracted.text == (
        "## Geese\n\n- first\n\n| goose | a\\|b |\n| --- | --- |\n| goose | a\\|b |\n\nBeside\n\nBoxed.\n\n1/2\n\n"
        "new\n\n[^2]: Noted.\n\nComment by Ann: Why?\n\nConfidential"
    )


def test_a_docx_keeps_the_numbers_of_its_lists(tmp_path: Path) -> None:
    levels = '<w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl>'
    body = "".join(
        paragraph(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="5"/></w:numPr>')
        for text, depth in (("one", 0), ("inner", 1), ("two", 0))
    )
    numbering = (
        f'<w:numbering XMLNS><w:abstractNum w:abstractNumId="3">{levels}</w:abstractNum>'
        '<w:num w:numId="5"><w:abstractNumId w:val="3"/></w:num></w:numbering>'
    )
    assert read(tmp_path, a_docx(body, numbering=numbering)).text == "1. one\n   - inner\n2. two"


def test_a_pptx_keeps_slides_titles_tables_charts_and_notes(tmp_path: Path) -> None:
    rows = "".join(
        f"<a:tr>{''.join(f'<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>' for text in row)}</a:tr>"
        for row in (("bird", "number"), ("goose", "17"))
    )
    table = f"<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>"
    chart = '<p:graphicFrame><c:chart r:id="r1"/></p:graphicFrame>'
    series = (
        "<c:ser><c:tx><c:v>Geese</c:v></c:tx><c:cat><c:pt idx='0'><c:v>2024</c:v></c:pt></c:cat>"
        "<c:val><c:pt idx='0'><c:v>17</c:v></c:pt></c:val></c:ser>"
    )
    said = shape("Say it slowly", "body") + shape("2", "sldNum")
    extracted = read(
        tmp_path,
        a_pptx(
            shape("The body\nsecond", "body") + shape("Birds", "title") + shape("7", "sldNum"),
            f"<p:grpSp>{shape('Grouped')}</p:grpSp>{table}{chart}",
            **{
                "ppt/slides/_rels/slide2.xml.rels": relations(
                    ("chart", "../charts/chart1.xml"), ("notesSlide", "../notesSlides/n.xml")
                ),
                "ppt/charts/chart1.xml": f"<c:chartSpace {PREFIXES}>{series}</c:chartSpace>",
                "ppt/notesSlides/n.xml": f"<p:notes {PREFIXES}>{said}</p:notes>",
            },
        ),
    )
    first, second = (
        "## Birds\n\n- The body\n- second\n\n",
        (
            "Grouped\n\n| bird | number |\n| --- | --- |\n| goose | 17 |\n\n|  | Geese |\n| --- | --- |\n"
            "| 2024 | 17 |\n\nNotes: Say it slowly\n\n"
        ),
    )
    expected = ExtractedText(first + second, kinds.PPTX, (0, len(first)), markdown=True, dates={"properties": None})
    assert extracted == expected


def test_a_broken_slide_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    extracted = read(tmp_path, a_pptx(shape("Whole"), b"<p:sld", "<p:pic/>"))
    assert "Whole" in extracted.text
    assert extracted.warning is not None
    assert "1 of 3 slides are damaged" in extracted.warning
    assert "1 of 3 slides have only a picture and no text" in extracted.warning


def test_an_odt_keeps_headings_lists_and_tables(tmp_path: Path) -> None:
    body = (
        '<text:h text:outline-level="2">Geese</text:h><text:p>A<text:s text:c="2"/>goose<text:note>'
        "<text:note-citation>1</text:note-citation><text:note-body><text:p>noted</text:p></text:note-body></text:note>.</text:p>"
        "<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>two</text:p></text:list-item>"
        "</text:list></text:list-item></text:list>"
        '<table:table><table:table-header-rows><table:table-row><table:table-cell table:number-columns-repeated="2">'
        "<text:p>bird</text:p></table:table-cell></table:table-row></table:table-header-rows><table:table-row>"
        "<table:table-cell><text:p>goose</text:p></table:table-cell><table:table-cell><text:p>17</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )
    extracted = read(tmp_path, an_opendocument("text", body))
    assert (
        extracted.text
        == "## Geese\n\nA  goose (noted).\n\n- one\n  - two\n\n| bird | bird |\n| --- | --- |\n| goose | 17 |"
    )
    assert (extracted.media_type, extracted.markdown) == (kinds.ODT, True)


def test_an_odp_keeps_its_slides(tmp_path: Path) -> None:
    slide = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Birds {0}</text:p></draw:text-box>'
        "</draw:frame><draw:frame><draw:text-box><text:p>Geese.</text:p></draw:text-box></draw:frame></draw:page>"
    )
    extracted = read(tmp_path, an_opendocument("presentation", slide.format(1) + slide.format(2)))
    assert extracted.text == "## Birds 1\n\nGeese.\n\n## Birds 2\n\nGeese.\n\n"
    assert extracted.page_starts == (0, 20)


def test_an_xlsx_keeps_sheets_rows_and_comments(tmp_path: Path) -> None:
    remark = f'<comments {PREFIXES}><comment ref="B2"><text><t>Really?</t></text></comment></comments>'
    extracted = read(tmp_path, an_xlsx(a_sheet(("bird", "number"), ("goose", "17")), **{"xl/comments1.xml": remark}))
    assert extracted.text.startswith("## Prices\n\n| bird | number |\n| --- | --- |\n| goose | 17 |")
    assert "- Comment on B2: Really?" in extracted.text
    assert (extracted.media_type, extracted.markdown) == (kinds.XLSX, True)


def test_a_date_of_an_old_workbook_is_a_date(tmp_path: Path) -> None:
    assert "| 2018-09-20 |" in read_file(tmp_path, "testEXCEL_dateFormats.xls").text


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("testEXCEL_dateFormats.xls", kinds.XLS, "## Munka1\n\n| date |"),
        ("testWORD_tabular_symbol.doc", kinds.DOC, "one two"),
        ("testFooter.ods", kinds.ODS, "## Sheet1\n\n| Data 1 | Data 2 |"),
        ("msg_with_attachment.msg", kinds.MSG, "**Subject**: Email with Attachment"),
        ("xlsx_05_table_with_title.xlsx", kinds.XLSX, "## Duck Observations"),
        ("r2-owner-password.pdf", kinds.PDF, "pdf encryption test"),
    ],
)
def test_a_real_file_is_recognised_without_its_name_and_read(tmp_path: Path, name: str, kind: str, words: str) -> None:
    extracted = read_file(tmp_path, name)
    assert extracted.media_type == kind
    assert words in extracted.text


def test_a_real_ppt_is_read(tmp_path: Path) -> None:
    extracted = read(tmp_path, shared("documents/tika/testMSChart-govdocs-428996.ppt").read_bytes())
    assert extracted.media_type == kinds.PPT
    assert "Thin Film Partnership" in extracted.text


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"{\\rtf1\\ansi\\ansicpg1250 Za\\'bf\\'f3\\'b3\\'e6 {\\b goose}\\par}", kinds.RTF, "Zażółć"),
        (b"{\\rtf1 {\\i0\\*\\cs7 The quick goose}\\par}", kinds.RTF, "The quick goose"),
        (an_epub("<html xmlns='http://www.w3.org/1999/xhtml'><body><h1>One</h1></body></html>"), kinds.EPUB, "# One"),
        (MAIL, kinds.EML, "Seventeen café geese."),
        (MAIL, kinds.EML, "Geese"),
        (PAGE.encode(), kinds.HTML, "# Birds\n\n## Geese\n\nA **goose** hisses.\n\n- one"),
        (PAGE.encode(), kinds.HTML, "| goose | 17 "),
        (PAGE.encode("utf-16"), kinds.HTML, "hisses"),
        (PAGE.replace("goose", "Gänsé").replace("<meta", "<meta charset=latin1><meta").encode("l1"), kinds.HTML, "Gän"),
        (b"<?xml version='1.0'?>\n<!-- x -->\n<html><body><p>Geese</p></body></html>", kinds.HTML, "Geese"),
    ],
)  # fmt: skip
def test_a_kind_is_read_as_markdown(tmp_path: Path, content: bytes, kind: str, words: str) -> None:
    extracted = read(tmp_path, content)
    assert extracted.media_type == kind
    assert words in extracted.text
    assert extracted.markdown
    assert "var n" not in extracted.text
    assert "secret" not in extracted.text
    assert "data:x" not in extracted.text


def test_a_notebook_is_its_cells_and_what_they_printed(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Geese\n", "count"]},
        {"cell_type": "code", "source": "print(17)", "outputs": [{"text": ["17\n"]}, {"data": {"image/png": "iVBOR"}}]},
    ]
    text = json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4})
    extracted = read(tmp_path, text)
    assert extracted.text == "# Geese\ncount\n\n```python\nprint(17)\n```\n\n```\n17\n```"
    assert extracted.media_type == kinds.NOTEBOOK
    assert read(tmp_path, text[:-9]).text == text[:-9], "what is no notebook comes as it is"


def test_a_notebook_keeps_its_tables_its_errors_and_its_headings_of_before_the_fourth_version(tmp_path: Path) -> None:
    page = "<style>td {}</style><table><tr><th>bird</th><th>n</th></tr><tr><td>goose</td><td>17</td></tr></table>"
    error = ["\x1b[0;31mValueError\x1b[0m: no geese", "line 1"]
    cells: list[dict[str, Any]] = [
        {"cell_type": "heading", "level": 2, "source": ["Geese"]},
        {
            "cell_type": "code", "language": "python", "input": "count()",
            "outputs": [{"html": page, "text": "bird n"}, {"output_type": "pyerr", "traceback": error}],
        },
    ]  # fmt: skip
    expected = (
        "## Geese\n\n```python\ncount()\n```\n\n| bird | n |\n| --- | --- |\n| goose | 17 |\n\n"
        "```\nValueError: no geese\nline 1\n```"
    )
    old = {"worksheets": [{"cells": cells}], "nbformat": 3, "metadata": {}}
    assert read(tmp_path, json.dumps(old)).text == expected
    cells[1]["outputs"] = [{"data": {"text/html": page, "text/plain": "x"}}, {"traceback": error}]
    assert read(tmp_path, json.dumps({"cells": cells, "metadata": {}})).text == expected


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("sep=;\nbird;a,b\ngoose;17\n", "| bird | a,b |\n| --- | --- |\n| goose | 17 |"),
        (
            "Bank export\nAccount;DE00 1\n\nDate;Payee;Amount\n1;2;3,0\n4;5;6,0\n",
            "Bank export\n\nAccount DE00 1\n\n"
            "| Date | Payee | Amount |\n| --- | --- | --- |\n| 1 | 2 | 3,0 |\n| 4 | 5 | 6,0 |",
        ),
        (";a;b\nx;1;2\ny;3;4\n", "|  | a | b |\n| --- | --- | --- |\n| x | 1 | 2 |\n| y | 3 | 4 |"),
        ("a;b\n1;2;3\n4;5;6\n", "| a | b |  |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |"),
    ],
)
def test_a_csv_has_the_names_of_its_columns_as_its_head(tmp_path: Path, content: str, text: str) -> None:
    assert read(tmp_path, content, "a.csv").text == text


def test_a_csv_is_a_table(tmp_path: Path) -> None:
    extracted = read(tmp_path, 'bird;"number; all"\ngoose;17\n\nduck\n', "a.csv")
    assert extracted.text == "| bird | number; all |\n| --- | --- |\n| goose | 17 |\n| duck |  |"
    assert (extracted.media_type, extracted.markdown) == (kinds.CSV, True)
    assert read(tmp_path, "a\tb\n1\t2,5\n", "a.tsv").text == "| a | b |\n| --- | --- |\n| 1 | 2,5 |"
    prose = read(tmp_path, "No table at all.\nReally.\n", "b.csv")
    assert (prose.text, prose.markdown) == ("No table at all.\nReally.\n", False)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ((FILES / "encrypted.pdf").read_bytes(), "This PDF has a password. Save it without one"),
        ((FILES / "password_protected.xlsx").read_bytes(), "This file has a password. Save it without one"),
        (b"%PDF-1.7 nonsense", "This PDF is damaged"),
        (b"PK\x03\x04 nonsense", "is damaged and cannot be opened"),
        (a_docx(paragraph("x"))[:-30], "is damaged and cannot be opened"),
        (archive({"_rels/.rels": relations(("officeDocument", "word/document.xml")), "word/document.xml": "<w:docu"}),
         "is not well-formed XML"),
        (archive({"a.txt": "x", "b.txt": "y"}), "This ZIP archive contains 2 files but isn't a document. Unpack it"),
        (archive({"Index/Document.iwa": "x"}), "Pages, Numbers or Keynote file. Export it"),
        (archive({}), "This ZIP archive contains 0 files"),
        (an_xlsx("nonsense"), "This workbook is damaged"),
        (an_xlsx(a_sheet()), "There is no text in the cells of this workbook"),
        (an_opendocument("text", "", **{"META-INF/manifest.xml": "<m><encryption-data/></m>"}), "has a password"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 2000, "an Office file of a kind that cannot be read"),
        ((FILES / "testWORD_tabular_symbol.doc").read_bytes()[:6000], "an Office file of a kind that cannot be read"),
        (a_pptx(b"<p", b"<q"), "none of its 2 slides can be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_it_is_and_what_to_do(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(ExtractionFailed, match=words) as caught:
        read(tmp_path, content)
    assert str(caught.value).endswith(".")


def a_pdf(*pages: str, picture_on: int | None = None) -> bytes:
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for number, text in enumerate(pages, 1):
        pdf.add_page()
        if text:
            pdf.multi_cell(0, text=text)
        if number == picture_on:
            pdf.rect(20, 20, 100, 100)
    return bytes(pdf.output())


def test_a_pdf_keeps_its_pages_and_tells_of_those_without_text(tmp_path: Path) -> None:
    extracted = read(tmp_path, a_pdf("One goose.", "", "Three.", picture_on=2))
    assert [extracted.text[start : start + 3] for start in extracted.page_starts] == ["One", "\n\nT", "Thr"]
    assert extracted.scans == (2,)
    assert read(tmp_path, a_pdf("One goose.", "", "Three.")).scans == (), "an empty page hides nothing"


def test_what_is_filled_in_a_pdf_form_is_read(tmp_path: Path) -> None:
    assert "foo" in read(tmp_path, shared("documents/pypdf/form_acrobatReader.pdf").read_bytes()).text
