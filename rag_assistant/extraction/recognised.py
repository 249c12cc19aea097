"""Insert recognised text into a document's text, and locate it on the image of its page. Pure.

Positions are in points (1/72 inch) from the upper left corner of the displayed page.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from statistics import median

from msgspec.structs import replace

from rag_assistant.extraction.formats.markup import PAGE_BREAK, pages_of
from rag_assistant.extraction.page_layout import Box, find_letters, letters_of, lines_of
from rag_assistant.records.documents import ExtractedText, RecognisedPage, Word

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
    text = ""
    above: Box | None = None
    for line in page.lines:
        here = box_of(line)
        if above is not None:
            text += _between(above, here)
        text += " ".join(word.text for word in line)
        above = here
    return text


def with_recognised(extracted: ExtractedText, recognised: Mapping[int, RecognisedPage]) -> ExtractedText:
    """Return a document's text with that of recognised pages inserted."""
    if not recognised:
        return extracted
    ends = [*(start - len(PAGE_BREAK) for start in extracted.page_starts[1:]), len(extracted.text)]
    pages = [extracted.text[start:end] for start, end in zip(extracted.page_starts, ends, strict=True)]
    if pages:
        pages[-1] = pages[-1].removesuffix(PAGE_BREAK)
    texts = [text_of(recognised[n]) if n in recognised else page for n, page in enumerate(pages, 1)]
    merged = pages_of(texts, extracted.media_type)
    return replace(extracted, text=merged.text, page_starts=merged.page_starts)


def lines_marked(page: RecognisedPage, passage: str, before: int) -> list[Box]:
    """Return the lines of a passage on a page; ``before`` as in ``page_render.Mark``."""
    words = [word for line in page.lines for word in line]
    word_of = [index for index, word in enumerate(words) for _ in letters_of(word.text)]
    letters = "".join(letters_of(word.text) for word in words)
    marked = find_letters(letters, letters_of(passage), before)
    if marked is None:
        return []
    first, last = marked
    return lines_of([box_of_word(word) for word in words[word_of[first] : word_of[last - 1] + 1]])


def box_of(line: Line) -> Box:
    return reduce(Box.with_, map(box_of_word, line))


def box_of_word(word: Word) -> Box:
    return Box(word.left, word.top, word.right, word.bottom)


def _between(above: Box, here: Box) -> str:
    shared = min(above.bottom, here.bottom) - max(above.top, here.top)
    if shared > 0.5 * min(above.height, here.height) and here.left >= above.right:
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
