"""Text recognition in its process: what it reads and where, and that no picture does any harm."""

import io
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assistant.extraction.extract import extract
from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.images import LONG_SIDE_POINTS
from rag_assistant.extraction.recognised import text_of
from rag_assistant.extraction.text_recognition import recognise
from rag_assistant.records.documents import RecognisedPage, Word
from rag_assistant.records.errors import ExtractionCancelled, ExtractionFailed

pytest.importorskip("rapidocr", reason="the extra ocr is not installed")
from msgspec.json import encode
from PIL import Image, ImageDraw, ImageFont

FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
TILT_DEGREES = 0.6
LINES = (
    "The lighthouse at Kap Arkona was built in 1827.",
    "Its keeper feeds seventeen geese at dawn, 19.3 metres",
    "above the sea. Größe, Füße and Straße are German words.",
)

needs_font = pytest.mark.skipif(not FONT.exists(), reason="Debian's fonts-dejavu-core is not installed")


def a_page(lines: tuple[str, ...] = LINES, tilt: float = TILT_DEGREES) -> Image.Image:
    """Return a picture of some lines, tilted as a sheet on a scanner."""
    image = Image.new("RGB", (1000, 400), "white")
    draw = ImageDraw.Draw(image)
    for n, line in enumerate(lines):
        draw.text((60, 80 + n * 60), line, font=ImageFont.truetype(str(FONT), 28), fill="black")
    return image.rotate(tilt, fillcolor="white", resample=Image.Resampling.BICUBIC)


def as_file(image: Image.Image, path: Path, kind: str = "PNG", **options: object) -> Path:
    image.save(path, kind, **options)
    return path


def recognised(
    path: Path, media_type: str, *pages: int, memory_mb: int = 2048, seconds: float = 60
) -> list[RecognisedPage]:
    return list(recognise(path, media_type, pages or (1,), memory_mb=memory_mb, timeout_seconds=seconds))


@pytest.mark.long
@needs_font
def test_a_tilted_page_is_read_with_the_place_of_each_word(tmp_path: Path) -> None:
    (page,) = recognised(as_file(a_page(), tmp_path / "page"), kinds.PNG)
    wanted, found = " ".join(LINES).split(), text_of(page).split()
    assert sum(word in found for word in wanted) >= 0.95 * len(wanted)
    geese = next(word for line in page.lines for word in line if word.text.startswith("geese"))
    assert _overlap(geese, _where("geese", line=1)) > 0.5


def _where(word: str, line: int) -> Word:
    """Return where a word was drawn, turned with its page about the middle."""
    font = ImageFont.truetype(str(FONT), 28)
    before = LINES[line][: LINES[line].index(word)]
    left, top = 60 + font.getlength(before), 80 + line * 60
    box = font.getbbox(word)
    angle, middle = -math.radians(TILT_DEGREES), (500, 200)
    x, y = left + (box[0] + box[2]) / 2 - middle[0], top + (box[1] + box[3]) / 2 - middle[1]
    x, y = middle[0] + x * math.cos(angle) - y * math.sin(angle), middle[1] + x * math.sin(angle) + y * math.cos(angle)
    wide, high, points = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2, LONG_SIDE_POINTS / 1000
    return Word(word, *(points * value for value in (x - wide, y - high, x + wide, y + high)))


def _overlap(one: Word, other: Word) -> float:
    """Return which share of the area of both is common to them."""
    wide = min(one.right, other.right) - max(one.left, other.left)
    high = min(one.bottom, other.bottom) - max(one.top, other.top)
    areas = [(word.right - word.left) * (word.bottom - word.top) for word in (one, other)]
    common = max(0.0, wide) * max(0.0, high)
    return common / (sum(areas) - common)


@pytest.mark.long
@needs_font
def test_all_kinds_of_images_are_read_and_a_tiff_page_by_page(tmp_path: Path) -> None:
    first, second = a_page(LINES[:1], 0), a_page(("A second page about gulls.",), 0)
    tiff = as_file(first, tmp_path / "tiff", "TIFF", save_all=True, append_images=[second])
    assert extract(tiff, kinds.TIFF, memory_mb=1000, timeout_seconds=20).scans == (1, 2)
    for kind in ("JPEG", "WEBP"):
        with Image.open(as_file(second, tmp_path / kind, kind)) as image:
            assert image.size == (1000, 400)
        assert extract(tmp_path / kind, f"image/{kind.lower()}", memory_mb=1000, timeout_seconds=20).scans == (1,)
    assert "second page about gulls" in text_of(recognised(tiff, kinds.TIFF, 2)[0])


@pytest.mark.long
def test_a_broken_image_and_one_cut_short_are_said_to_be_damaged(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + b"no picture" * 20)
    with pytest.raises(ExtractionFailed, match="This image is damaged"):
        extract(broken, kinds.PNG, memory_mb=1000, timeout_seconds=20)
    whole = io.BytesIO()
    Image.effect_noise((400, 400), 60).convert("RGB").save(whole, "JPEG")
    broken.write_bytes(whole.getvalue()[:9000])
    (page,) = recognised(broken, kinds.JPEG)
    assert page.problem == "This image is damaged and cannot be read."


def a_png(width: int, height: int) -> bytes:
    """Return what says that it is a PNG of such a size; it holds one row."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = zlib.compress(bytes(1 + (width + 7) // 8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_a_bomb_is_refused_by_its_size_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    bomb.write_bytes(a_png(40_000, 20_000))
    with pytest.raises(ExtractionFailed, match=r"40000 x 20000 pixels; the limit is 80,000,000"):
        extract(bomb, kinds.PNG, memory_mb=300, timeout_seconds=20)


def test_pages_that_break_the_process_do_not_take_the_others_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def lines(_module: str, _path: Path, arguments: list[str], _: object) -> Iterator[bytes]:
        started.append(arguments[1])
        yield encode(RecognisedPage(1, ((Word("goose", 1, 2, 3, 4),),))) + b"\n"
        raise ExtractionFailed("Reading this file took longer than 1 seconds.")

    monkeypatch.setattr("rag_assistant.extraction.text_recognition.confined", lines)
    found = recognised(tmp_path / "scan", kinds.PDF, 1, 2, 3)
    assert started == ["[1, 2, 3]", "[3]"]
    assert [page.page for page in found] == [1, 2, 3]
    assert [text_of(page) for page in found] == ["goose", "", "goose"]
    assert found[1].problem == "Reading this file took longer than 1 seconds."


@pytest.mark.long
def test_too_little_memory_is_a_problem_of_the_page(tmp_path: Path) -> None:
    path = as_file(Image.new("RGB", (600, 600), "white"), tmp_path / "page")
    (page,) = recognised(path, kinds.PNG, memory_mb=256, seconds=20)
    assert page.problem is not None
    assert "memory" in page.problem


def test_recognition_is_cancelled_before_a_page_is_read(tmp_path: Path) -> None:
    path = as_file(Image.new("RGB", (600, 600), "white"), tmp_path / "page")
    with pytest.raises(ExtractionCancelled):
        next(recognise(path, kinds.PNG, (1,), memory_mb=2048, timeout_seconds=60, cancelled=lambda: True))
