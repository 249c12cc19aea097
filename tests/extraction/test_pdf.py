"""A PDF is read as a person reads it: column by column, what is filled in beside its label, what is attached behind."""

from pathlib import Path
from typing import TYPE_CHECKING

from rag_assistant.extraction.formats.pdf import Field, ordered_text
from rag_assistant.extraction.recognised import Box
from tests.extraction.reading import read
from tests.testkit.pdfs import new_pdf
from tests.testkit.shared_data import shared

if TYPE_CHECKING:
    from fpdf import FPDF

PROSE = (
    "The district court sits on Wednesday. Appeals must be filed within thirty days. The fee for an appeal is two "
    "hundred crowns. Bring two copies of every form, and a stamped envelope for the answer, which takes three weeks."
) * 2


def a_page(*texts: tuple[float, float, str]) -> "FPDF":
    """Return a page of 210 by 297 mm with texts at their places, in the order in which they are drawn."""
    pdf = new_pdf()
    pdf.add_page()
    pdf.set_font("helvetica", size=10)
    for x, y, text in texts:
        pdf.text(x, y, text)
    return pdf


def test_columns_that_are_drawn_row_by_row_are_read_one_after_the_other(tmp_path: Path) -> None:
    rows = [
        (x, 40 + 5 * n, f"{side} {n} goes on about geese and ducks")
        for n in range(8)
        for x, side in ((20, "left"), (115, "right"))
    ]
    page = a_page((20, 20, "A heading over both of the columns of this page, and so it is long"), *rows)
    read_as = [line[:7] for line in read(tmp_path, bytes(page.output())).text.split("\n") if line.strip()]
    assert read_as == ["A headi", *(f"left {n} " for n in range(8)), *(f"right {n}" for n in range(8))]


def test_the_rows_of_a_table_stay_rows(tmp_path: Path) -> None:
    rows = [
        (x, 40 + 5 * n, text)
        for n, name in enumerate(("Ann Lind", "Bo", "Cy Ek of the old harbour office", "Di", "Ed", "Flo Nyberg"))
        for x, text in ((20, name), (115, f"{n} geese" + " and ducks of the whole yard" * (n % 2)))
    ]
    text = read(tmp_path, bytes(a_page(*rows).output())).text
    assert [line[:4] for line in text.split("\n") if line.strip()] == ["Ann ", "Bo 1", "Cy E", "Di 3", "Ed 4", "Flo "]


def test_what_is_filled_in_and_ticked_stands_beside_its_label(tmp_path: Path) -> None:
    text = read(tmp_path, shared("public_reports/inputs/76_form.pdf").read_bytes()).text
    assert text.split("\n\n")[:3] == ["Applicant name: Bertil Ahlgren", "Agree: [x]", "Blue"]


def test_a_tick_stands_before_what_is_ticked_and_a_value_below_its_label(tmp_path: Path) -> None:
    import pypdfium2

    page = pypdfium2.PdfDocument(bytes(a_page((20, 20, "red"), (50, 20, "blue"), (20, 40, "Name")).output()))[0]
    mm = 72 / 25.4
    fields = [
        Field(Box(16 * mm, 17 * mm, 19 * mm, 20 * mm), "[x]", True),
        Field(Box(46 * mm, 17 * mm, 49 * mm, 20 * mm), "[ ]", True),
        Field(Box(20 * mm, 41 * mm, 60 * mm, 45 * mm), "Bertil", False),
    ]
    text = ordered_text(page, page.get_textpage(), fields)
    assert " ".join(str(text).split()) == "[x] red [ ] blue Name Bertil"


def test_files_that_are_attached_to_a_pdf_are_read_behind_it(tmp_path: Path) -> None:
    pdf = a_page((20, 20, "See the list."))
    (tmp_path / "list.csv").write_text("bird,number\ngoose,17\n")
    (tmp_path / "logo.bin").write_bytes(b"\x89PNG\r\n\x1a\n")
    pdf.embed_file(tmp_path / "list.csv")
    pdf.embed_file(tmp_path / "logo.bin")
    extracted = read(tmp_path, bytes(pdf.output()))
    assert extracted.text.startswith("See the list.")
    assert "# Attachment: list.csv\n\n| bird | number |" in extracted.text
    assert extracted.warning == "Attachments not read, or only partly: logo.bin. Add them separately."


def test_comments_stand_below_their_page_with_their_author_and_the_words_they_mark(tmp_path: Path) -> None:
    pdf = a_page((20, 20, "The deposit is two hundred crowns."), (20, 40, "Opens at eight."))
    with pdf.highlight("Is it refundable?", title="Mara"):
        pdf.text(20, 60, "Paid in March.")
    with pdf.highlight("", type="StrikeOut"):
        pdf.text(20, 80, "Geese only.")
    pdf.text_annotation(x=60, y=20, text="Three hundred\nsince May")
    (tmp_path / "plan.txt").write_text("Ducks swim at noon.")
    pdf.file_attachment_annotation(tmp_path / "plan.txt", 100, 20)
    pdf.add_page()
    text = read(tmp_path, bytes(pdf.output())).text
    assert "Comment by Mara on “Paid in March.”: Is it refundable?\n\n" in text
    assert "Comment on “Geese only.”: struck out\n\n" in text
    assert "Comment: Three hundred since May\n\n" in text
    assert text.count("Comment") == 3
    assert "# Attachment: plan.txt\n\nDucks swim at noon." in text


def test_text_that_was_written_onto_a_page_is_no_comment(tmp_path: Path) -> None:
    text = read(tmp_path, shared("public_reports/inputs/48_marks.pdf").read_bytes()).text
    assert text.count("Closed on 14 August") == 1


def test_a_page_whose_font_does_not_name_its_letters_is_a_scan(tmp_path: Path) -> None:
    extracted = read(tmp_path, shared("public_reports/inputs/47_no_unicode.pdf").read_bytes())
    assert (extracted.text.strip(), extracted.scans) == ("", (1,))


def test_a_page_in_no_language_is_told(tmp_path: Path) -> None:
    shifted = "".join(chr(ord(one) + 1) if one.isalpha() else one for one in PROSE)
    pdf = a_page()
    for text in (PROSE, shifted):
        pdf.multi_cell(0, text=text)
        pdf.add_page()
    extracted = read(tmp_path, bytes(pdf.output()))
    assert shifted[:20] in extracted.text
    assert extracted.warning == "The text of 1 of 3 pages is in no known language: its letters may be wrong."


def a_pdf_with_a_layer(switched_off: str) -> bytes:
    """Return a page with a line on a layer of its own, which may be off, and one that is on no layer."""
    content = "BT /F 12 Tf 50 700 Td (Geese hiss) Tj ET /OC /L BDC BT /F 12 Tf 50 650 Td (Swans sing) Tj ET EMC"
    objects = [
        f"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[5 0 R]/D<</Order[5 0 R]/OFF[{switched_off}]>>>>>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Rotate 90/Contents 4 0 R"
        "/Resources<</Font<</F 6 0 R>>/Properties<</L 5 0 R>>>>>>",
        f"<</Length {len(content)}>>stream\n{content}\nendstream",
        "<</Type/OCG/Name(Draft)>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    written = "".join(f"{n} 0 obj\n{one}\nendobj\n" for n, one in enumerate(objects, 1))
    return f"%PDF-1.5\n{written}trailer<</Size 7/Root 1 0 R>>".encode()


def test_text_on_a_layer_that_is_off_is_not_read(tmp_path: Path) -> None:
    assert read(tmp_path, a_pdf_with_a_layer("5 0 R")).text.split("\n") == ["Geese hiss", "", ""]
    assert "Swans sing" in read(tmp_path, a_pdf_with_a_layer("")).text
