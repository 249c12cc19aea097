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


def levels(*kinds: tuple[str, str, int], first: int = 0) -> str:
    """Return the levels of a list, each with its format, its label and its first number."""
    return "".join(
        f'<w:lvl w:ilvl="{depth}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{label}"/></w:lvl>'
        for depth, (kind, label, start) in enumerate(kinds, first)
    )


def listed(*items: tuple[int, int, str]) -> str:
    """Return paragraphs, each with its list, its depth and its text."""
    return "".join(
        paragraph(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{one}"/></w:numPr>')
        for one, depth, text in items
    )


def test_clauses_have_the_numbers_that_word_shows(tmp_path: Path) -> None:
    clauses = levels(("decimal", "%1.", 3), ("decimal", "%1.%2", 1), ("lowerLetter", "(%3)", 1), ("bullet", "o", 1))
    articles = levels(("upperRoman", "Article %1:", 1), ("decimal", "&#167; %1-%2", 9))
    numbering = (
        f'<w:numbering XMLNS><w:abstractNum w:abstractNumId="0">{clauses}</w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="1">{articles}</w:abstractNum>'
        '<w:abstractNum w:abstractNumId="2"><w:numStyleLink w:val="Legal"/></w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="3"><w:styleLink w:val="Legal"/>{levels(("decimalZero", "%1)", 1))}'
        '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/>'
        '</w:lvlOverride></w:num><w:num w:numId="4"><w:abstractNumId w:val="1"/></w:num>'
        '<w:num w:numId="5"><w:abstractNumId w:val="2"/></w:num></w:numbering>'
    )
    body = listed(
        (1, 0, "Delivery"), (1, 1, "in May"), (1, 1, "at once"), (1, 2, "by boat"), (1, 2, "by cart"), (1, 3, "slowly"),
        (1, 0, "Payment"), (1, 1, "in June"), (2, 0, "goes on"), (3, 0, "begins anew"), (3, 0, "and on"),
        (4, 0, "Fees"), (4, 1, "due"), (4, 0, "Dogs"), (5, 0, "linked"),
    )  # fmt: skip
    assert read(tmp_path, a_docx(body, numbering=numbering)).text.split("\n") == [
        "3. Delivery", "   - 3.1 in May", "   - 3.2 at once", "     - (a) by boat", "     - (b) by cart",
        "       - slowly", "4. Payment", "   - 4.1 in June", "5. goes on", "7. begins anew", "8. and on",
        "- Article I: Fees", "  - § I-9 due", "- Article II: Dogs", "- 01) linked",
    ]  # fmt: skip


def test_headings_keep_the_numbers_of_their_style(tmp_path: Path) -> None:
    kinds = levels(("upperRoman", "%1", 1)) + (
        '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:pStyle w:val="B"/><w:isLgl/>'
        '<w:lvlText w:val="%1.%2"/></w:lvl>'
    )
    numbering = (
        f'<w:numbering XMLNS><w:abstractNum w:abstractNumId="0">{kinds}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    )
    in_list = '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
    styles = (
        f'<w:styles XMLNS><w:style w:styleId="A"><w:name w:val="heading 1"/>{in_list}</w:style>'
        f'<w:style w:styleId="B"><w:name w:val="heading 2"/>{in_list}</w:style></w:styles>'
    )
    texts = (("A", "Scope"), ("A", "Terms"), ("B", "Owner"), ("B", "Berth"))
    body = "".join(paragraph(text, f'<w:pStyle w:val="{style}"/>') for style, text in texts)
    plain = paragraph("No number", '<w:pStyle w:val="B"/><w:numPr><w:numId w:val="0"/></w:numPr>')
    assert read(tmp_path, a_docx(body + plain, numbering=numbering, styles=styles)).text.split("\n\n") == [
        "# I Scope", "# II Terms", "## 2.1 Owner", "## 2.2 Berth", "## No number",
    ]  # fmt: skip


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
