"""Pictures of pages: where a passage is marked, and that nothing but a picture or a sentence comes of any file."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pypdfium2
import pytest

from rag_assistant.extraction import page_render
from rag_assistant.extraction.formats.kinds import PDF
from rag_assistant.extraction.page_render import TINT, Mark, draw_page, png_of
from rag_assistant.extraction.recognised import find_letters, letters_of
from rag_assistant.records.errors import ExtractionFailed
from tests.testkit.pdfs import new_pdf

FACT = "The lighthouse keeper feeds seventeen geese."


def a_pdf(tmp_path: Path, *pages: str) -> Path:
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for page in pages:
        pdf.add_page()
        pdf.multi_cell(0, text=page)
    path = tmp_path / "kept"
    path.write_bytes(bytes(pdf.output()))
    return path


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process to draw, which takes longer than to draw; the other tests do."""

    def draw(_: str, path: Path, arguments: list[str], _limits: object) -> Iterator[bytes]:
        return page_render.work(path, *arguments)

    monkeypatch.setattr(page_render, "confined", draw)


def drawn(path: Path, page: int = 1, passage: str = "", before: int = 0, whole: bool = True) -> bytes:
    return draw_page(path, PDF, page, Mark(passage, before, whole), memory_mb=1000, timeout_seconds=20)


def size_of(picture: bytes) -> tuple[int, int]:
    return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")


def rows_with(picture: bytes, color: tuple[int, int, int]) -> list[int]:
    """Return the rows of a picture in which a color is."""
    width, height = size_of(picture)
    body = picture[picture.index(b"IDAT") + 4 : picture.index(b"IEND") - 8]
    pixels = zlib.decompress(body)
    wanted, stride = bytes(color), width * 3 + 1
    return [y for y in range(height) if wanted in pixels[y * stride + 1 : (y + 1) * stride]]


def test_the_passage_alone_is_marked(tmp_path: Path) -> None:
    passage = f"{FACT} The geese are fed at seven, when the tower opens."
    path = a_pdf(
        tmp_path, f"{'Boats pass. ' * 60}\n\n{FACT}\nThe geese are fed at seven, when the\ntower opens.\n\nGulls."
    )
    marked = rows_with(drawn(path, 1, passage), TINT)
    assert 60 < len(marked) < 140
    assert marked == list(range(marked[0], marked[-1] + 1))  # Line below line, without a gap.
    assert rows_with(drawn(path), TINT) == []


@pytest.mark.usefixtures("in_this_process")
def test_a_passage_is_shown_with_its_surroundings_and_large_enough_to_read(tmp_path: Path) -> None:
    path = a_pdf(tmp_path, f"{'Boats pass. ' * 60}\n\n{FACT}\n\n{'Gulls steal. ' * 200}")
    whole, part = drawn(path, 1, FACT), drawn(path, 1, FACT, whole=False)
    assert size_of(part)[1] < size_of(whole)[1]
    assert len(rows_with(part, TINT)) > 1.5 * len(rows_with(whole, TINT))
    above, below = rows_with(part, TINT)[0], size_of(part)[1] - rows_with(part, TINT)[-1]
    assert min(above, below) > 100
    assert size_of(drawn(path, 1, "What stands nowhere.", whole=False)) == size_of(whole)


@pytest.mark.long
@pytest.mark.usefixtures("in_this_process")
def test_a_passage_that_fills_its_page_is_not_marked(tmp_path: Path) -> None:
    text = " ".join(f"Boat {n} passes the lighthouse at dawn." for n in range(140))
    path = a_pdf(tmp_path, text)
    assert rows_with(drawn(path, 1, text, whole=False), TINT) == []


@pytest.mark.usefixtures("in_this_process")
def test_on_a_turned_page_the_passage_is_marked_where_it_is_seen(tmp_path: Path) -> None:
    pdf = pypdfium2.PdfDocument(a_pdf(tmp_path, f"{FACT}\n\n{'Boats pass. ' * 60}"))
    pdf[0].set_rotation(180)
    pdf.save(tmp_path / "turned")
    picture = drawn(tmp_path / "turned", 1, FACT)
    assert min(rows_with(picture, TINT)) > 0.8 * size_of(picture)[1]


@pytest.mark.long
@pytest.mark.usefixtures("in_this_process")
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "words"), [(0, "There is no page 0"), (4, "There is no page 4; the document has 1 page.")]
)
def test_a_page_that_is_not_there_is_a_sentence(tmp_path: Path, page: int, words: str) -> None:
    with pytest.raises(ExtractionFailed, match=words):
        drawn(a_pdf(tmp_path, FACT), page)


@pytest.mark.long
def test_a_passage_without_end_is_marked_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = a_pdf(tmp_path, FACT)
    assert rows_with(drawn(path, 1, FACT + "🪿" * 1_000_000), TINT)


def test_what_is_no_pdf_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"%PDF-1.4 and then nothing")
    with pytest.raises(ExtractionFailed, match="Page 1 is damaged and cannot be rendered"):
        drawn(path)


@pytest.mark.long
def test_a_huge_page_is_drawn_small_and_a_flat_one_still_has_a_picture(tmp_path: Path) -> None:
    for width, height in ((14_000, 14_000), (14_000, 1), (1, 14_000)):
        pdf = pypdfium2.PdfDocument.new()
        pdf.new_page(width, height)
        pdf.save(tmp_path / "kept")
        across, down = size_of(drawn(tmp_path / "kept"))
        assert 1 <= across * down <= page_render.MAX_PIXELS + 10_000


def test_only_pictures_come_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_render, "confined", lambda *_: [b"<script>alert(1)</script>"])
    with pytest.raises(ExtractionFailed, match="the result is not an image"):
        drawn(tmp_path / "kept")


def test_rows_become_a_picture() -> None:
    picture = png_of(np.arange(1, 13, dtype=np.uint8).reshape(2, 2, 3))
    assert size_of(picture) == (2, 2)
    assert rows_with(picture, (7, 8, 9)) == [1]
