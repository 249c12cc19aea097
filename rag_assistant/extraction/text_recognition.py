"""Recognise the text of scanned pages and images, page by page, in a sandboxed process. RapidOCR is used only here."""

import importlib.util
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import MsgspecError
from msgspec.json import decode, encode
from msgspec.structs import replace

from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.recognised import in_reading_order
from rag_assistant.extraction.sandbox_process import Limits, confined
from rag_assistant.records.documents import RecognisedPage, Word
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.settings.package_files import command_for_extra

INSTALL = command_for_extra("ocr")
MAX_LINE_BYTES = 4_000_000
# The long side of a page in pixels, also the detector's limit: A4 at 170 dots per inch.
PAGE_PIXELS = 2000
# Recognition has the lowest priority on this machine.
NICENESS = 10


def is_installed() -> bool:
    """Return whether text recognition is installed."""
    return importlib.util.find_spec("rapidocr") is not None


def recognise(
    path: Path,
    media_type: str,
    pages: Sequence[int],
    *,
    memory_mb: int,
    timeout_seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[RecognisedPage]:
    """Yield the recognised text of the pages, counted from 1, in order.

    A page that can't be read, or takes longer than ``timeout_seconds``, has a problem, and the others are read without
    it. Raises ExtractionCancelled.
    """
    waiting = list(pages)
    while waiting:
        arguments, rest = [media_type, json.dumps(waiting)], b""
        limits = Limits(memory_mb, timeout_seconds, MAX_LINE_BYTES, cancelled, NICENESS, len(waiting))
        try:
            with closing(confined(__name__, path, arguments, limits)) as pieces:
                for piece in pieces:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield replace(decode(line, type=RecognisedPage), page=waiting.pop(0))
            problem = "Text recognition ended early."
        except MsgspecError:
            problem = "Text recognition failed: the result made no sense."
        except ExtractionFailed as error:
            problem = str(error)
        if waiting:  # The current page broke the process: a new one reads the others.
            yield RecognisedPage(waiting.pop(0), problem=problem)


@cache
def _engine() -> Any:
    """Return the recogniser, which takes a second to load: a page that can't even be rendered doesn't need it."""
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.return_word_box": True,
            "Global.max_side_len": PAGE_PIXELS,
            # A second thread makes a page no cheaper, and this work can wait.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _page(path: Path, media_type: str, number: int) -> RecognisedPage:
    pixels, points = _pixels_of_image(path, number) if media_type in kinds.IMAGES else _pixels_of_pdf(path, number)
    result = _engine()(pixels)
    lines = [_line(words, points) for words in result.word_results if words and result.txts]
    return RecognisedPage(number, tuple(in_reading_order([line for line in lines if line])))


def _line(words: Any, points: float) -> tuple[Word, ...]:
    """Return a line's words, each with its bounding rectangle; ``points`` is the size of a pixel."""
    line: list[Word] = []
    for text, _score, corners in words:
        if corners is not None and str(text).strip():
            box = np.asarray(corners)
            sides = (*box.min(axis=0), *box.max(axis=0))
            line.append(Word(str(text), *(round(points * float(side), 1) for side in sides)))
    return tuple(line)


def _pixels_of_pdf(path: Path, number: int) -> tuple[Any, float]:
    """Return a page as BGR, and the size of a pixel in points. Raises ExtractionFailed."""
    import pypdfium2

    from rag_assistant.extraction.formats.pdf import flattened_page

    try:
        pdf = pypdfium2.PdfDocument(path)
        page = flattened_page(pdf, number - 1)
        scale = PAGE_PIXELS / max(*page.get_size(), 1.0)
        return page.render(scale=scale, may_draw_forms=False).to_numpy().copy(), 1 / scale
    except pypdfium2.PdfiumError as error:
        raise ExtractionFailed("The page is damaged and cannot be rendered.") from error


def _pixels_of_image(path: Path, number: int) -> tuple[Any, float]:
    from PIL.Image import Resampling

    from rag_assistant.extraction.formats.images import image_page, points_per_pixel

    image = image_page(path, number)
    points = points_per_pixel(*image.size)
    if max(image.size) > PAGE_PIXELS:
        factor = PAGE_PIXELS / max(image.size)
        # Sharper filters make the recogniser lose whole lines.
        image = image.resize([max(1, round(side * factor)) for side in image.size], Resampling.BOX)
        points = points / factor
    return np.asarray(image)[:, :, ::-1].copy(), points


def work(path: Path, media_type: str, pages: str) -> Iterator[bytes]:
    """Yield a line of JSON for each page of a file."""
    for number in json.loads(pages):
        try:
            page = _page(path, media_type, number)
        except ExtractionFailed as error:
            page = RecognisedPage(number, problem=str(error))
        except MemoryError:
            page = RecognisedPage(number, problem="Recognising its text takes more memory than is allowed.")
        yield encode(page) + b"\n"
