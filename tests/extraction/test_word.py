"""What Word shows is read: raised digits, merged cells, numbers of lists, and whole files within a document."""

import io
import zipfile
from pathlib import Path

from tests.extraction.archives import a_docx, paragraph, relations
from tests.extraction.reading import read


def run(text: str, align: str = "") -> str:
    properties = f'<w:rPr><w:vertAlign w:val="{align}"/></w:rPr>' if align else ""
    return f"<w:r>{properties}<w:t>{text}</w:t></w:r>"


def test_a_power_is_no_digit_of_its_number_and_the_mark_of_a_note_none_of_its_word(tmp_path: Path) -> None:
    runs = [
        run("10"), run("6", "superscript"), run(" N on 5 m"), run("2", "superscript"), run(", see note"),
        run("3", "superscript"), run(", the 1"), run("st", "superscript"), run(" CO"), run("2", "subscript"),
    ]  # fmt: skip
    expected = "10^6 N on 5 m\u00b2, see note^3, the 1st CO2"
    assert read(tmp_path, a_docx(f"<w:p>{''.join(runs)}</w:p>")).text == expected
    page = "<p>10<sup>6</sup> N on 5 m<sup>2</sup>, see note<sup>3</sup>, the 1<sup>st</sup> CO<sub>2</sub></p>"
    assert read(tmp_path, f"<html><body>{page}</body></html>").text.strip() == expected


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def test_a_merged_cell_says_the_same_in_each_row(tmp_path: Path) -> None:
    wide, start, more = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = [
        cell("region", start) + cell("2025", wide), cell("", more) + cell("Q1") + cell("Q2"),
        cell("Harbour", start) + cell("1") + cell("2"), cell("", more) + cell("3") + cell("4"),
        cell("Upland", start) + cell("5") + cell("6"),
    ]  # fmt: skip
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    assert read(tmp_path, a_docx(table)).text == (
        "| region | 2025 Q1 | 2025 Q2 |\n| --- | --- | --- |\n| Harbour | 1 | 2 |\n"
        "| Harbour | 3 | 4 |\n| Upland | 5 | 6 |"
    )


def test_a_style_numbers_its_paragraphs(tmp_path: Path) -> None:
    numbering = (
        '<w:numbering XMLNS><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>'
        '</w:abstractNum><w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    )
    styles = (
        '<w:styles XMLNS><w:style w:styleId="N"><w:name w:val="List Number"/><w:pPr><w:numPr>'
        '<w:numId w:val="5"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="M"><w:name w:val="mine"/><w:basedOn w:val="N"/></w:style></w:styles>'
    )
    body = "".join(paragraph(text, f'<w:pStyle w:val="{style}"/>') for text, style in (("one", "N"), ("two", "M")))
    plain = paragraph("plain", '<w:pStyle w:val="N"/><w:numPr><w:numId w:val="0"/></w:numPr>')
    assert read(tmp_path, a_docx(body + plain, numbering=numbering, styles=styles)).text == "1. one\n2. two\n\nplain"


def with_files(body: str, *files: tuple[str, bytes]) -> bytes:
    held = io.BytesIO(a_docx(body))
    with zipfile.ZipFile(held, "a") as archive:
        for name, content in files:
            archive.writestr(f"word/{name}", content)
        archive.writestr("word/_rels/document.xml.rels", relations(*(("aFChunk", name) for name, _ in files)))
    return held.getvalue()


def test_whole_files_within_a_document_are_read_in_their_places(tmp_path: Path) -> None:
    inner = a_docx(paragraph("Inner text."))
    chunks = "".join(f'<w:altChunk r:id="r{n}"/>' for n in (1, 2, 3))
    files = (("a.html", b"<html><body><p>A page.</p></body></html>"), ("b.docx", inner), ("c.docx", b"PK\3\4 broken"))
    extracted = read(tmp_path, with_files(paragraph("Before.") + chunks + paragraph("After."), *files))
    assert extracted.text == "Before.\n\nA page.\n\nInner text.\n\nAfter."
    assert "1 of " in str(extracted.warning)
    document = paragraph("Innermost.")
    content = a_docx(document)
    for _ in range(6):
        content = with_files('<w:altChunk r:id="r1"/>' + paragraph("Level."), ("a.docx", content))
    assert "Innermost." not in read(tmp_path, content).text


def test_folders_that_are_parted_by_backslashes_are_folders(tmp_path: Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(a_docx(paragraph("Geese.")))) as good, zipfile.ZipFile(held, "w") as odd:
        for name in good.namelist():
            entry = zipfile.ZipInfo("x")
            entry.filename = name.replace("/", "\\")
            odd.writestr(entry, good.read(name))
    assert read(tmp_path, held.getvalue()).text == "Geese."
