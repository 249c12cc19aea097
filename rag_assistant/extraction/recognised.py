"""Insert recognised text into a document's text, and locate it, or a passage, on the image of its page. Pure.

Positions are in points (1/72 inch) from the upper left corner of the displayed page.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.extraction.formats.markup import PAGE_BREAK, pages_of
from rag_assistant.records.documents import ExtractedText, RecognisedPage, Word

# Two pieces of text are on one line if they share this much of the smaller one's height, with no larger gap (in
# heights) between them: what is farther away is in the next column or cell.
MIN_SHARED_HEIGHT = 0.5
MAX_GAP = 2.5
# The margin shown around a passage, and the minimum size of a part of a page.
SURROUNDINGS_ACROSS, SURROUNDINGS_DOWN = 8.0, 80.0
MIN_PART_WIDTH, MIN_PART_HEIGHT = 260.0, 120.0
# With more of the page, or more parts, the whole page is clearer.
MAX_SHOWN_SHARE = 0.75
MAX_PARTS = 3
# How much of a passage is searched for if it isn't found word for word.
CHARACTERS_TO_RECOGNISE = 40


class Box(Struct, frozen=True):
    """A rectangle on a page."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """The share of a page that it covers."""
        return self.width * self.height

    def is_beside(self, other: Box) -> bool:
        """Whether it shares at least half of the smaller one's height with another."""
        shared = min(self.bottom, other.bottom) - max(self.top, other.top)
        return shared >= MIN_SHARED_HEIGHT * min(self.height, other.height)

    def with_(self, other: Box) -> Box:
        """Return the smallest rectangle around both."""
        return Box(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )


def lines_of(boxes: Sequence[Box]) -> list[Box]:
    """Return pieces of text, given in reading order, merged by line; consecutive lines touch."""
    lines: list[Box] = []
    for box in boxes:
        if lines and _on_one_line(lines[-1], box):
            lines[-1] = lines[-1].with_(box)
        else:
            lines.append(box)
    for index in range(1, len(lines)):
        upper, lower = lines[index - 1], lines[index]
        if abs(lower.top - upper.bottom) < min(upper.height, lower.height) and _overlap_across(upper, lower):
            middle = (lower.top + upper.bottom) / 2
            lines[index - 1] = Box(upper.left, upper.top, upper.right, middle)
            lines[index] = Box(lower.left, middle, lower.right, lower.bottom)
    return lines


def parts_of(lines: Sequence[Box], page: Box) -> list[Box]:
    """Return the parts of a page that show some lines with their surroundings, one per column.

    Empty if they would show too much of the page, or there are no lines.
    """
    parts: list[Box] = []
    for index, line in enumerate(lines):
        # A column begins where the text continues farther up.
        goes_up = index > 0 and line.bottom < lines[index - 1].top
        if parts and (not goes_up or _overlap_across(parts[-1], line)):
            parts[-1] = parts[-1].with_(line)
        else:
            parts.append(line)
    framed = [_framed(part, page) for part in parts]
    too_much = len(framed) > MAX_PARTS or sum(part.area for part in framed) > MAX_SHOWN_SHARE * page.area
    return [] if too_much else framed


def letters_of(text: str) -> str:
    """Return the normalised letters and digits of a text, for comparing two readings of it."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def find_letters(page: str, passage: str, before: int) -> tuple[int, int] | None:
    """Return where the passage is among the letters of a page, nearest to ``before``; None if nowhere.

    If it isn't there word for word, its beginning and end are searched for.
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
    has_end = 0 <= end <= start + 2 * len(passage)
    return start, end + len(tail) if has_end else min(len(page), start + len(head))


def _nearest(page: str, needle: str, before: int) -> int | None:
    indexes: list[int] = []
    index = page.find(needle)
    while index >= 0 and len(indexes) < 1000:
        indexes.append(index)
        index = page.find(needle, index + 1)
    return min(indexes, key=lambda one: abs(one - before), default=None)


def _on_one_line(line: Box, box: Box) -> bool:
    gap = max(box.left - line.right, line.left - box.right)
    return line.is_beside(box) and gap <= MAX_GAP * max(line.height, box.height)


def _overlap_across(one: Box, other: Box) -> bool:
    return one.left < other.right and other.left < one.right


def _framed(part: Box, page: Box) -> Box:
    across = max(SURROUNDINGS_ACROSS, (MIN_PART_WIDTH - part.width) / 2)
    down = max(SURROUNDINGS_DOWN, (MIN_PART_HEIGHT - part.height) / 2)
    return Box(
        max(page.left, part.left - across),
        max(page.top, part.top - down),
        min(page.right, part.right + across),
        min(page.bottom, part.bottom + down),
    )


Line = tuple[Word, ...]
# A larger gap between two lines (in heights of the upper one) ends a paragraph.
PARAGRAPH_GAP = 0.8
# Columns of text: the minimum gap and line length (in heights of a line), the minimum lines in each, and the maximum
# share of lines that span both. What is narrower is a table, which is read row by row.
COLUMN_GAP, MIN_COLUMN_WIDTH = 0.8, 10.0
MIN_COLUMN_LINES, MAX_SHARE_ACROSS = 3, 0.3


def in_reading_order(lines: Sequence[Line]) -> list[Line]:
    """Return lines, given from top to bottom, in reading order if the page has columns."""
    boxes = [box_of(line) for line in lines]
    gutter = gutter_of(boxes)
    if gutter is None:
        return list(lines)
    ordered: list[Line] = []
    left: list[Line] = []
    right: list[Line] = []
    for line, box in zip(lines, boxes, strict=True):
        if box.right <= gutter:
            left.append(line)
        elif box.left >= gutter:
            right.append(line)
        else:  # A heading across all columns: what is above it is read first.
            ordered += [*in_reading_order(left), *in_reading_order(right), line]
            left, right = [], []
    return [*ordered, *in_reading_order(left), *in_reading_order(right)]


def text_of(page: RecognisedPage) -> str:
    """Return the text of a page, with an empty line between paragraphs; the cells of a row are one line."""
    breaks = ["", *(_between(above, here) for above, here in pairwise(map(box_of, page.lines)))]
    return "".join(
        f"{mark}{' '.join(word.text for word in line)}" for mark, line in zip(breaks, page.lines, strict=False)
    )


def with_recognised(extracted: ExtractedText, recognised: Mapping[int, RecognisedPage]) -> ExtractedText:
    """Return a document's text with that of recognised pages inserted."""
    if not recognised:
        return extracted
    ends = [*(start - len(PAGE_BREAK) for start in extracted.page_starts[1:]), len(extracted.text)]
    pages = [extracted.text[start:end] for start, end in zip(extracted.page_starts, ends, strict=True)]
    if pages:
        pages[-1] = pages[-1].removesuffix(PAGE_BREAK)
    # Comments and attached files stand on the page already.
    both = [[text_of(recognised[n]), page] if n in recognised else [page] for n, page in enumerate(pages, 1)]
    texts = ["\n\n".join(filter(str.strip, parts)) if len(parts) > 1 else parts[0] for parts in both]
    merged = pages_of(texts, extracted.media_type)
    return replace(extracted, text=merged.text, page_starts=merged.page_starts)


def lines_marked(page: RecognisedPage, passage: str, before: int) -> list[Box]:
    """Return the lines of a passage on a page; ``before`` as in ``page_render.Mark``."""
    words = [word for line in page.lines for word in line]
    word_of = [index for index, word in enumerate(words) for _ in letters_of(word.text)]
    marked = find_letters("".join(letters_of(word.text) for word in words), letters_of(passage), before)
    if marked is None:
        return []
    first, last = marked
    return lines_of([box_of_word(word) for word in words[word_of[first] : word_of[last - 1] + 1]])


def box_of(line: Line) -> Box:
    return reduce(Box.with_, map(box_of_word, line))


def box_of_word(word: Word) -> Box:
    return Box(word.left, word.top, word.right, word.bottom)


def _between(above: Box, here: Box) -> str:
    if above.is_beside(here) and here.left >= above.right:
        return " "
    apart = here.top - above.bottom > PARAGRAPH_GAP * above.height or here.bottom < above.top
    return "\n\n" if apart else "\n"


def gutter_of(boxes: Sequence[Box]) -> float | None:
    """Return the horizontal position where the leftmost column ends; ``None`` if there is only one."""
    if len(boxes) < 2 * MIN_COLUMN_LINES:
        return None
    height = median(box.height for box in boxes)
    for gutter in sorted({box.right for box in boxes}):
        left = [box for box in boxes if box.right <= gutter]
        right = [box for box in boxes if box.left >= gutter + COLUMN_GAP * height]
        if min(len(left), len(right)) < MIN_COLUMN_LINES:
            continue
        few_across = len(boxes) - len(left) - len(right) <= MAX_SHARE_ACROSS * len(boxes)
        of_text = min(median(box.width for box in side) for side in (left, right)) >= MIN_COLUMN_WIDTH * height
        if few_across and of_text:
            return gutter
    return None


# Boxes may overlap by this share of their size at each end, as frames around text do.
OVERLAP = 0.1
# Beside others at least so many times as wide, a column holds their labels or numbers.
LABEL_RATIO = 2.0
# Slides with more boxes are drawings.
MAX_BOXES = 200


def reading_order(boxes: Sequence[Box]) -> list[int]:
    """Return the indexes of a slide's boxes in reading order: column by column where there are columns, else by row.

    Those that no straight line separates stay as they are given.
    """
    indexes = list(range(len(boxes)))
    return _ordered(indexes, boxes) if len(boxes) <= MAX_BOXES else indexes


def _ordered(indexes: list[int], boxes: Sequence[Box]) -> list[int]:
    columns = _apart(indexes, [(boxes[n].left, boxes[n].right) for n in indexes])
    widths = [max(boxes[n].width for n in column) for column in columns]
    if len(columns) < 2 or max(widths) > LABEL_RATIO * min(widths):
        rows = _apart(indexes, [(boxes[n].top, boxes[n].bottom) for n in indexes])
        columns = rows if len(rows) > 1 else columns
    return [n for part in columns for n in _ordered(part, boxes)] if len(columns) > 1 else indexes


def _apart(indexes: list[int], spans: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return the indexes in groups whose spans leave a gap between them."""
    groups: list[list[int]] = []
    reach = 0.0
    for (start, end), index in sorted(zip(spans, indexes, strict=True)):
        inset = OVERLAP * (end - start)
        if not groups or start + inset >= reach:
            groups.append([])
            reach = end - inset
        groups[-1].append(index)
        reach = max(reach, end - inset)
    return [sorted(group) for group in groups]
