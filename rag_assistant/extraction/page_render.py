"""Render a PDF page or an image with a marked passage, in a separate process with the limits of reading.

A browser always gets a rendering, never an uploaded file.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace
from numpy.typing import NDArray

from rag_assistant.extraction.formats.kinds import IMAGES
from rag_assistant.extraction.recognised import Box, find_letters, letters_of, lines_of, parts_of
from rag_assistant.extraction.sandbox_process import Limits, confined
from rag_assistant.records.errors import ExtractionFailed

PNG = b"\x89PNG\r\n\x1a\n"
WIDTH_PIXELS, MAX_PIXELS_DOWN = 1200, 4000
MAX_PIXELS = 4_000_000
MAX_SCALE = 4.0
MAX_PICTURE_BYTES = 13_000_000
# A program's argument is limited to 131,072 bytes; a character takes up to 12 in JSON.
MAX_MARKED_CHARS = 9_000
MAX_MARKED_LINES = 500
# Like a highlighter: the paper takes the colour, print stays dark.
TINT = (255, 212, 96)
# A passage that fills more of its page isn't tinted: nothing would stand out.
MAX_TINTED_SHARE = 0.4
GAP_COLOR, GAP_PIXELS = (214, 218, 216), 12
# The library returns positions as integers, this many to a point.
STEPS = 100

Pixels = NDArray[np.uint8]


class Mark(Struct, frozen=True, tag=True):
    """The passage to mark on a page.

    ``before`` is how many characters of the page precede it, which distinguishes repeated text. With ``whole`` the
    whole page is shown, otherwise the part with the passage.
    """

    passage: str = ""
    before: int = 0
    whole: bool = False


class MarkedLines(Struct, frozen=True, tag=True):
    """The same for a page with known word positions: the lines of the passage."""

    passage: Sequence[Box] = ()
    whole: bool = False


def draw_page(
    path: Path, media_type: str, page: int, mark: Mark | MarkedLines, *, memory_mb: int, timeout_seconds: float
) -> bytes:
    """Return a PNG of a page, counted from 1, or its marked part. Raises ExtractionFailed, which says why."""
    most = MAX_MARKED_CHARS if isinstance(mark, Mark) else MAX_MARKED_LINES
    mark = replace(mark, passage=mark.passage[:most])
    argument = json.dumps(to_builtins(mark))  # In ASCII, whatever is marked.
    limits = Limits(memory_mb, timeout_seconds, MAX_PICTURE_BYTES)
    output = b"".join(confined(__name__, path, [media_type, str(page), argument], limits))
    if not output.startswith(PNG):
        raise ExtractionFailed("Rendering this page failed: the result is not an image.")
    return output


def _drawn(path: Path, media_type: str, number: int, mark: Mark | MarkedLines) -> bytes:
    if media_type in IMAGES:  # An image has no text of its own.
        lines = mark if isinstance(mark, MarkedLines) else MarkedLines(whole=mark.whole)
        return _picture(_ImagePage(path, number), lines)
    import pypdfium2

    from rag_assistant.extraction.formats.pdf import flattened_page

    try:
        pdf = pypdfium2.PdfDocument(path)
        if not 1 <= number <= len(pdf):
            pages = "1 page" if len(pdf) == 1 else f"{len(pdf)} pages"
            raise ExtractionFailed(f"There is no page {number}; the document has {pages}.")
        page = flattened_page(pdf, number - 1)
        return _picture(_PdfPage(page), mark if isinstance(mark, MarkedLines) else _marked(page, mark))
    except pypdfium2.PdfiumError as error:
        raise ExtractionFailed(f"Page {number} is damaged and cannot be rendered.") from error


def _picture(page: _PdfPage | _ImagePage, marked: MarkedLines) -> bytes:
    """Return an image of the shown parts of a page, one below the other, or of all of it."""
    passage = marked.passage
    whole = Box(0.0, 0.0, *page.get_size())
    parts = [] if marked.whole else parts_of(passage, whole)
    if sum(line.area for line in passage) > MAX_TINTED_SHARE * whole.area:
        passage = ()
    parts = parts or [whole]
    across, down = max(part.width for part in parts), sum(part.height for part in parts)
    scale = min(
        WIDTH_PIXELS / max(across, 1),
        MAX_PIXELS_DOWN / max(down, 1),
        (MAX_PIXELS / max(across * down, 1)) ** 0.5,
        MAX_SCALE,
    )
    drawn = [_tinted(page.pixels(part, scale), passage, part, scale) for part in parts]
    width = max(pixels.shape[1] for pixels in drawn)
    gap = np.full((GAP_PIXELS, width, 3), GAP_COLOR, np.uint8)
    wide = [np.pad(one, ((0, 0), (0, width - one.shape[1]), (0, 0)), constant_values=255) for one in drawn]
    return png_of(np.concatenate([piece for pixels in wide for piece in (gap, pixels)][1:]))


class _PdfPage:
    """A PDF page: its size in points, and the RGB pixels of a part of it."""

    def __init__(self, page: Any) -> None:
        self._page = page

    def get_size(self) -> tuple[float, float]:
        width, height = self._page.get_size()
        return width, height

    def pixels(self, part: Box, scale: float) -> Pixels:
        width, height = self.get_size()
        crop = (part.left, height - part.bottom, width - part.right, part.top)
        bitmap = self._page.render(scale=scale, crop=crop, rev_byteorder=True, may_draw_forms=False)
        return np.array(bitmap.to_numpy()[:, :, :3])


class _ImagePage:
    """The same for an image."""

    def __init__(self, path: Path, number: int) -> None:
        from rag_assistant.extraction.formats.images import image_page, points_per_pixel

        self._image = image_page(path, number)
        self._points = points_per_pixel(*self._image.size)

    def get_size(self) -> tuple[float, float]:
        width, height = self._image.size
        return width * self._points, height * self._points

    def pixels(self, part: Box, scale: float) -> Pixels:
        size = tuple(max(1, round(side * scale)) for side in (part.width, part.height))
        corners = tuple(value / self._points for value in (part.left, part.top, part.right, part.bottom))
        return np.array(self._image.resize(size, box=corners))


def _tinted(pixels: Pixels, boxes: Sequence[Box], part: Box, scale: float) -> Pixels:
    """Return pixels, multiplied by a colour in some boxes, only once where they overlap."""
    tinted = np.zeros(pixels.shape[:2], bool)
    for box in boxes:
        across = (max(0, round((x - part.left) * scale)) for x in (box.left, box.right))
        down = (max(0, round((y - part.top) * scale)) for y in (box.top, box.bottom))
        tinted[slice(*down), slice(*across)] = True
    pixels[tinted] = pixels[tinted] * np.array(TINT, np.uint16) // 255
    return pixels


def _marked(page: Any, mark: Mark) -> MarkedLines:
    """Return the lines of the passage; none if it isn't on the page."""
    if not mark.passage.strip():
        return MarkedLines(whole=mark.whole)
    textpage = page.get_textpage()
    letters, index_of = _letters_on(textpage)
    marked = find_letters(letters, letters_of(mark.passage), mark.before)
    if marked is None:
        return MarkedLines(whole=mark.whole)
    first, last = marked
    count = textpage.count_rects(index_of[first], index_of[last - 1] - index_of[first] + 1)
    return MarkedLines(lines_of([_as_seen(page, textpage.get_rect(n)) for n in range(count)]), mark.whole)


def _as_seen(page: Any, rect: tuple[float, float, float, float]) -> Box:
    """Return a rectangle in the coordinates of the displayed page, which may be rotated or cropped."""
    from pypdfium2 import PdfPosConv

    left, bottom, right, top = rect
    position = PdfPosConv(page, (0, 0, *(round(length * STEPS) for length in page.get_size()), 0))
    across, down = zip(position.to_bitmap(left, top), position.to_bitmap(right, bottom), strict=True)
    return Box(min(across) / STEPS, min(down) / STEPS, max(across) / STEPS, max(down) / STEPS)


def _letters_on(textpage: Any) -> tuple[str, list[int]]:
    """Return the letters of a page, and the character index on the page of each."""
    import pypdfium2.raw as pdfium

    letters: list[str] = []
    index_of: list[int] = []
    for index in range(textpage.count_chars()):
        code = pdfium.FPDFText_GetUnicode(textpage.raw, index)
        plain = letters_of(chr(code)) if 0 < code <= sys.maxunicode and not 0xD800 <= code < 0xE000 else ""
        letters.extend(plain)
        index_of.extend([index] * len(plain))
    return "".join(letters), index_of


def png_of(pixels: Pixels) -> bytes:
    """Return pixels, as rows of RGB, as a PNG."""
    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    # No row is filtered.
    body = zlib.compress(np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes(), 6)
    return PNG + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def work(path: Path, media_type: str, page: str, mark: str) -> Iterator[bytes]:
    """Yield the image of one page. Raises ExtractionFailed."""
    try:
        yield _drawn(path, media_type, int(page), convert(json.loads(mark), Mark | MarkedLines))
    except MemoryError as error:
        raise ExtractionFailed("Rendering this page takes more memory than is allowed.") from error
