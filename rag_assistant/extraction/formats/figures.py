"""Tell which pages of a PDF have a figure: something large that is drawn there. To miss one is better than to err."""

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import islice
from typing import Any

import pypdfium2.raw as pdfium
from msgspec import Struct
from msgspec.structs import astuple
from pypdfium2 import PdfiumError

from rag_assistant.extraction.recognised import Box
from rag_assistant.records.documents import CAPTION

# Of a page, an image that is no logo, and a drawing that is no ornament.
MIN_IMAGE, MIN_DRAWING = 0.05, 0.03
# A longer one is a banner; more letters to a square point are text over an image, such as that of a scan.
MAX_ASPECT, MAX_DENSITY = 5.0, 0.001
# A larger path is a background. A drawing has so many paths, and so many points in those that aren't simple.
MAX_PATH, MIN_PATHS, MIN_POINTS, MIN_POINTS_IN_ALL = 0.6, 15, 12, 120
# Beside a caption so many are enough, and they may be simple, such as bars; what is thinner is a rule.
MIN_PATHS_CAPTIONED, MIN_THICKNESS_POINTS = 4, 2.0
# The same image in the same place of so many pages is a letterhead or a background.
MIN_REPEATED = 3
MAX_OBJECTS, MAX_POINTS = 5000, 300


class Shown(Struct, frozen=True):
    """What a page shows besides its text: larger images, and whether there is a drawing."""

    images: tuple[Box, ...] = ()
    is_drawing: bool = False


def shown_on(page: Any, textpage: Any, text: str) -> Shown:
    """Return what a page shows; nothing of a damaged one."""
    images, shapes, paths, points, is_captioned = [], list[Box](), 0, 0, CAPTION.search(text) is not None
    try:
        whole = Box(*page.get_bbox())
        for one in islice(page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_PATH]), MAX_OBJECTS):
            box = _box_of(one, whole)
            if one.type == pdfium.FPDF_PAGEOBJ_IMAGE:
                if box.area >= MIN_IMAGE * whole.area > 0 and _is_bare(box, textpage):
                    images.append(Box(*map(round, astuple(box))))
            elif box.area < MAX_PATH * whole.area:
                paths, count = paths + 1, pdfium.FPDFPath_CountSegments(one.raw)
                points += min(count, MAX_POINTS) if count >= MIN_POINTS else 0
                if count >= MIN_POINTS or (is_captioned and min(box.width, box.height) > MIN_THICKNESS_POINTS):
                    shapes.append(box)
    except PdfiumError:
        return Shown()
    is_drawn = (paths >= MIN_PATHS and points >= MIN_POINTS_IN_ALL) or (is_captioned and paths >= MIN_PATHS_CAPTIONED)
    is_large = bool(shapes) and reduce(Box.with_, shapes).area >= MIN_DRAWING * whole.area
    return Shown(tuple(images), is_drawn and is_large)


def figures_on(pages: Sequence[Shown]) -> tuple[int, ...]:
    """Return the pages with a figure, counted from 1."""
    times = Counter(box for page in pages for box in set(page.images))
    few = [page.is_drawing or any(times[box] < MIN_REPEATED for box in page.images) for page in pages]
    return tuple(number for number, is_figure in enumerate(few, 1) if is_figure)


def _box_of(one: Any, whole: Box) -> Box:
    """Return where an object is on its page, which may be inside groups, each with its own coordinates."""
    left, bottom, right, top = one.get_bounds()
    group = one.container
    while group is not None:
        corners = [group.get_matrix().on_point(x, y) for x in (left, right) for y in (bottom, top)]
        (left, *_, right), (bottom, *_, top) = map(sorted, zip(*corners, strict=True))
        group = group.container
    left, bottom = max(left, whole.left), max(bottom, whole.top)
    return Box(left, bottom, max(left, min(right, whole.right)), max(bottom, min(top, whole.bottom)))


def _is_bare(box: Box, textpage: Any) -> bool:
    """Return whether a box is no banner, and hardly any text is in it."""
    words = textpage.get_text_bounded(box.left, box.top, box.right, box.bottom).split()
    return 1 / MAX_ASPECT < box.width / box.height < MAX_ASPECT and len("".join(words)) <= MAX_DENSITY * box.area
