"""Draw a page of a PDF with a passage marked on it, in a process of its own under the limits of reading.

As a program (``python -m rag_assistant.extraction.page_render FILE PAGE MARK MEMORY_MB SECONDS``) this module is that
process; it prints a PNG. What a browser gets is always drawn here, never a file that somebody uploaded.
"""

from __future__ import annotations

import json
import struct
import sys
import unicodedata
import zlib
from pathlib import Path
from typing import Any

from rag_assistant.errors import ExtractionFailed
from rag_assistant.extraction.sandbox import confine, limit
from rag_assistant.extraction.sandbox_process import FAILED_CLEANLY, Limits, raise_for_end, run_confined
from rag_assistant.runtime.supervised_process import end_with_parent

PNG = b"\x89PNG\r\n\x1a\n"
FAILED = b"failed\n"
WIDTH_PIXELS, MAX_PIXELS_DOWN = 1200, 4000
MAX_PIXELS = 4_000_000
MAX_PICTURE_BYTES = 13_000_000
# An argument of a program has room for 131,072 bytes; a character takes up to 12 in JSON.
MAX_MARKED_CHARS = 10_000
# Of a passage that does not stand on its page as it was read, this much is looked for.
CHARACTERS_TO_RECOGNISE = 40
TINT, LINE = (214, 238, 232, 255), (15, 107, 102, 255)
LINE_POINTS, GAP_POINTS = 2.5, 5.0


def draw_page(path: Path, page: int, passage: str, before: int, *, memory_mb: int, timeout_seconds: float) -> bytes:
    """Return a PNG of a page, counted from 1, with the passage marked where it stands on it.

    ``before`` is how many characters of the page stand before the passage: it tells apart what stands there twice.
    Raises ExtractionFailed with a sentence about what went wrong.
    """
    mark = json.dumps({"passage": passage[:MAX_MARKED_CHARS], "before": before}, ensure_ascii=True)
    limits = Limits(memory_mb, timeout_seconds, MAX_PICTURE_BYTES)
    output, status = run_confined(__spec__.name, [str(path), str(page), mark], limits)
    raise_for_end(status, timeout_seconds)
    if output.startswith(FAILED):
        raise ExtractionFailed(output.removeprefix(FAILED).decode("utf-8", "replace")[:300])
    if not output.startswith(PNG):
        raise ExtractionFailed("Drawing this page failed: what came out of it is no picture.")
    return output


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in their plain form, by which two readings of it are compared."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def find_letters(page: str, passage: str, before: int) -> tuple[int, int] | None:
    """Return where the passage stands among the letters of a page, the place nearest to ``before``; None if nowhere.

    Where it is not there word for word, as far as its beginning and its end are.
    """
    if not passage:
        return None
    whole = _nearest(page, passage, before)
    if whole is not None:
        return whole, whole + len(passage)
    head, tail = passage[:CHARACTERS_TO_RECOGNISE], passage[-CHARACTERS_TO_RECOGNISE:]
    start = _nearest(page, head, before)
    if start is None:
        return None
    end = page.find(tail, start)
    known = 0 <= end <= start + 2 * len(passage)
    return start, end + len(tail) if known else min(len(page), start + len(head))


def _nearest(page: str, needle: str, before: int) -> int | None:
    indexes: list[int] = []
    index = page.find(needle)
    while index >= 0 and len(indexes) < 1000:
        indexes.append(index)
        index = page.find(needle, index + 1)
    return min(indexes, key=lambda one: abs(one - before), default=None)


def _drawn(path: Path, number: int, mark: dict[str, Any]) -> bytes:
    import pypdfium2

    from rag_assistant.extraction.formats.pdf import flattened_page

    try:
        pdf = pypdfium2.PdfDocument(path)
        if not 1 <= number <= len(pdf):
            pages = "1 page" if len(pdf) == 1 else f"{len(pdf)} pages"
            raise ExtractionFailed(f"There is no page {number}; the document has {pages}.")
        page = flattened_page(pdf, number - 1)
        if mark["passage"].strip():
            _mark(page, mark["passage"], mark["before"])
        width, height = page.get_size()
        max_scales = (
            WIDTH_PIXELS / max(width, 1),
            MAX_PIXELS_DOWN / max(height, 1),
            (MAX_PIXELS / max(width * height, 1)) ** 0.5,
        )
        bitmap = page.render(scale=min(max_scales), rev_byteorder=True, may_draw_forms=False)
    except pypdfium2.PdfiumError as error:
        raise ExtractionFailed(f"Page {number} is damaged and cannot be drawn.") from error
    return png_of(bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels)


def _mark(page: Any, passage: str, before: int) -> None:
    """Put a tint behind the lines of the passage and a line beside them, below what stands on the page."""
    textpage = page.get_textpage()
    letters, index_of = _letters_on(textpage)
    found = find_letters(letters, letters_of(passage), before)
    if found is None:
        return
    first, last = index_of[found[0]], index_of[found[1] - 1]
    rects = [textpage.get_rect(n) for n in range(textpage.count_rects(first, last - first + 1))]
    for left, bottom, right, top in rects:
        _fill(page, (left - 2, bottom - 1.5, right + 2, top + 1.5), TINT)
    for left, bottom, top in _columns(rects):
        _fill(page, (left - GAP_POINTS - LINE_POINTS, bottom - 1.5, left - GAP_POINTS, top + 1.5), LINE)


def _letters_on(textpage: Any) -> tuple[str, list[int]]:
    """Return the letters of a page, and for each the number of the character on the page that it comes from."""
    import pypdfium2.raw as pdfium

    letters: list[str] = []
    index_of: list[int] = []
    for index in range(textpage.count_chars()):
        code = pdfium.FPDFText_GetUnicode(textpage.raw, index)
        plain = letters_of(chr(code)) if 0 < code <= sys.maxunicode and not 0xD800 <= code < 0xE000 else ""
        letters.extend(plain)
        index_of.extend([index] * len(plain))
    return "".join(letters), index_of


def _columns(rects: list[tuple[float, float, float, float]]) -> list[tuple[float, float, float]]:
    """Return for each column of lines where it begins on the left, its lowest and its highest place."""
    columns: list[tuple[float, float, float]] = []
    last_right = last_top = 0.0
    for left, bottom, right, top in rects:
        if columns and left < last_right and top < last_top + 1:
            at, lowest, highest = columns[-1]
            columns[-1] = min(at, left), min(lowest, bottom), max(highest, top)
            last_right = max(last_right, right)
        elif not columns or top >= last_top + 1 or bottom < last_top - 60:
            columns.append((left, bottom, top))
            last_right = right
        last_top = top
    return columns


def _fill(page: Any, rect: tuple[float, float, float, float], color: tuple[int, int, int, int]) -> None:
    import pypdfium2.raw as pdfium

    left, bottom, right, top = rect
    shape = pdfium.FPDFPageObj_CreateNewRect(left, bottom, right - left, top - bottom)
    pdfium.FPDFPageObj_SetFillColor(shape, *color)
    # What is printed there shows through, whatever lies above or below it.
    pdfium.FPDFPageObj_SetBlendMode(shape, b"Multiply")
    pdfium.FPDFPath_SetDrawMode(shape, pdfium.FPDF_FILLMODE_WINDING, False)
    pdfium.FPDFPage_InsertObject(page.raw, shape)


def png_of(pixels: bytes, width: int, height: int, stride: int, channels: int) -> bytes:
    """Return rows of pixels (1 grey, 3 RGB, 4 RGB and one to skip) as a PNG."""
    rows = []
    for y in range(height):
        row = pixels[y * stride : y * stride + width * channels]
        if channels == 4:
            plain = bytearray(width * 3)
            for colour in range(3):
                plain[colour::3] = row[colour::4]
            row = bytes(plain)
        rows.append(b"\0" + row)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    body = zlib.compress(b"".join(rows), 6)
    return PNG + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def main(path: str, page: str, mark: str, memory_mb: str, seconds: str) -> int:
    """Draw one page under limits and print the picture; return the exit status."""
    end_with_parent()
    limit(int(memory_mb), int(seconds))
    confine()
    try:
        output = _drawn(Path(path), int(page), json.loads(mark))
        status = 0
    except (ExtractionFailed, MemoryError) as error:
        sentence = str(error) or "Drawing this page takes more memory than is allowed."
        output, status = FAILED + sentence.encode(), FAILED_CLEANLY
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
