"""Pictures of pages: where a passage is marked, and that nothing but a picture or a sentence comes of any file."""

import zlib
from pathlib import Path

import pypdfium2
import pytest
from fpdf import FPDF

from rag_assistant.errors import ExtractionFailed
from rag_assistant.extraction import page_render
from rag_assistant.extraction.page_render import LINE, PNG, TINT, draw_page, find_letters, letters_of, png_of

FACT = "The lighthouse keeper feeds seventeen geese."


def a_pdf(tmp_path: Path, *pages: str) -> Path:
    pdf = FPDF()
    pdf.set_font("helvetica", size=12)
    for page in pages:
        pdf.add_page()
        pdf.multi_cell(0, text=page)
    path = tmp_path / "kept"
    path.write_bytes(bytes(pdf.output()))
    return path


def drawn(path: Path, page: int = 1, passage: str = "", before: int = 0, memory_mb: int = 1000) -> bytes:
    return draw_page(path, page, passage, before, memory_mb=memory_mb, timeout_seconds=20)


def rows_with(picture: bytes, color: tuple[int, int, int, int]) -> list[int]:
    """Return the rows of a picture in which a color is."""
    width = int.from_bytes(picture[16:20], "big")
    height = int.from_bytes(picture[20:24], "big")
    body = picture[picture.index(b"IDAT") + 4 : picture.index(b"IEND") - 8]
    pixels = zlib.decompress(body)
    wanted, stride = bytes(color[:3]), width * 3 + 1
    return [y for y in range(height) if wanted in pixels[y * stride + 1 : (y + 1) * stride]]


def test_the_passage_alone_is_marked(tmp_path: Path) -> None:
    path = a_pdf(tmp_path, f"{'Boats pass. ' * 60}\n\n{FACT}\n\n{'Gulls steal. ' * 60}")
    picture = drawn(path, 1, FACT)
    tinted, lined = rows_with(picture, TINT), rows_with(picture, LINE)
    assert 20 < len(tinted) < 60
    assert tinted == list(range(tinted[0], tinted[-1] + 1))
    assert set(lined) >= set(tinted[2:-2])
    assert rows_with(drawn(path), TINT) == []


def test_of_what_stands_there_twice_the_one_that_is_meant_is_marked(tmp_path: Path) -> None:
    path = a_pdf(tmp_path, f"{FACT}\n\n{'Boats pass. ' * 60}\n\n{FACT}")
    first = rows_with(drawn(path, 1, FACT, 0), TINT)
    second = rows_with(drawn(path, 1, FACT, 600), TINT)
    assert first[-1] < second[0]


def test_a_passage_is_known_by_its_letters_however_its_lines_break() -> None:
    page = letters_of("Die Gänse\u00ad des ﬁnnischen\nLeucht-\nturms.")
    assert page == letters_of("die gänse des finnischen Leuchtturms")
    assert find_letters(page, letters_of("finnischen  Leuchtturms"), 0) == (11, 32)
    assert find_letters(page, letters_of("Enten"), 0) is None
    assert find_letters(page, "", 0) is None
    tale = "".join(f"word{n}" for n in range(40))
    found = find_letters(f"xx{tale[:90]}DAMAGE{tale[90:]}yy", tale, 0)
    assert found == (2, 2 + len(tale) + 6)


@pytest.mark.parametrize(
    ("page", "words"), [(0, "There is no page 0"), (4, "There is no page 4; the document has 1 page.")]
)
def test_a_page_that_is_not_there_is_a_sentence(tmp_path: Path, page: int, words: str) -> None:
    with pytest.raises(ExtractionFailed, match=words):
        drawn(a_pdf(tmp_path, FACT), page)


def test_a_passage_without_end_is_marked_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = a_pdf(tmp_path, FACT)
    assert rows_with(drawn(path, 1, FACT + "🪿" * 1_000_000), TINT)


def test_what_is_no_pdf_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"%PDF-1.4 and then nothing")
    with pytest.raises(ExtractionFailed, match="Page 1 is damaged and cannot be drawn"):
        drawn(path)


def test_a_huge_page_is_drawn_small_and_a_flat_one_still_has_a_picture(tmp_path: Path) -> None:
    for width, height in ((14_000, 14_000), (14_000, 1), (1, 14_000)):
        pdf = pypdfium2.PdfDocument.new()
        pdf.new_page(width, height)
        pdf.save(tmp_path / "kept")
        picture = drawn(tmp_path / "kept")
        across, down = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
        assert 1 <= across * down <= page_render.MAX_PIXELS + 10_000


def test_only_pictures_come_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_render, "run_confined", lambda *_args, **_more: (b"<script>alert(1)</script>", 0))
    with pytest.raises(ExtractionFailed, match="what came out of it is no picture"):
        drawn(tmp_path / "kept")
    monkeypatch.setattr(page_render, "run_confined", lambda *_args, **_more: (PNG, -11))
    with pytest.raises(ExtractionFailed, match="crash"):
        drawn(tmp_path / "kept")


def test_rows_become_a_picture_without_their_padding() -> None:
    whole = png_of(bytes([1, 2, 3, 4, 5, 6, 99, 99, 7, 8, 9, 10, 11, 12, 99, 99]), 2, 2, 8, 3)
    assert whole == png_of(bytes([1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 0]), 2, 2, 8, 4)
    assert whole.startswith(PNG)
