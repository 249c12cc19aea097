"""Reorder the text of a PDF page whose drawing order isn't the reading order.

That is: columns drawn row by row, and form entries, which belong next to their labels.
"""

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from rag_assistant.extraction.page_layout import Box
from rag_assistant.extraction.recognised import box_of_word, gutter_of, in_reading_order, text_of
from rag_assistant.records.documents import RecognisedPage, Word

# A gap of this many heights separates columns and cells; a tick is no farther from its label.
GAP, TICK_GAP = 1.5, 1.5
# A label is at most this many heights above its field.
LABEL_ABOVE = 2.0
# Lines in a column of prose are about as long as the column; cells of a table aren't.
MIN_LINES, MIN_FILLED = 4, 0.75
MAX_VALUE_BYTES = 20_000


class Field(Struct, frozen=True):
    """A form field: its place, and its text or tick."""

    box: Box
    text: str
    is_tick: bool


def fields_of(pdf: Any, page: Any) -> list[Field]:
    """Return the fields of a page's form, without empty text fields; the form must be initialised."""
    import pypdfium2.raw as pdfium

    fields, height = [], page.get_height()
    for number in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
        annotation, rectangle = pdfium.FPDFPage_GetAnnot(page.raw, number), pdfium.FS_RECTF()
        kind = pdfium.FPDFAnnot_GetFormFieldType(pdf.formenv.raw, annotation)
        is_tick = kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
        text = ""
        if is_tick:
            text = "[x]" if pdfium.FPDFAnnot_IsChecked(pdf.formenv.raw, annotation) else "[ ]"
        elif kind in (pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
            buffer = (ctypes.c_ushort * (MAX_VALUE_BYTES // 2))()
            length = pdfium.FPDFAnnot_GetFormFieldValue(pdf.formenv.raw, annotation, buffer, MAX_VALUE_BYTES)
            text = bytes(buffer)[: min(length, MAX_VALUE_BYTES)].decode("utf-16-le", "ignore").rstrip("\0")
        if text.strip() and pdfium.FPDFAnnot_GetRect(annotation, rectangle):
            box = Box(rectangle.left, height - rectangle.top, rectangle.right, height - rectangle.bottom)
            fields.append(Field(box, " ".join(text.split()), is_tick))
        pdfium.FPDFPage_CloseAnnot(annotation)
    return fields


def ordered_text(page: Any, textpage: Any, fields: Sequence[Field]) -> str | None:
    """Return the text of a page in reading order, ``None`` if that is its drawing order."""
    if not fields and not _alternates(textpage):
        return None
    words = [word for word in _words(textpage, page.get_height()) if not any(_is_in(word, one.box) for one in fields)]
    columns = _columns(words)
    if columns is None and not fields:
        return None
    ordered = columns or words
    for field in fields:
        ordered.insert(_place(field, ordered), Word(field.text, *astuple(field.box)))
    return text_of(RecognisedPage(0, tuple((word,) for word in ordered)))


def _alternates(textpage: Any) -> bool:
    """Return whether consecutive pieces of text are repeatedly in one row, far from each other."""
    rectangles = [textpage.get_rect(number) for number in range(textpage.count_rects())]
    times = 0
    for (_, bottom, right, top), (left, other_bottom, _, other_top) in pairwise(rectangles):
        height = min(top - bottom, other_top - other_bottom)
        times += left - right > GAP * height and min(top, other_top) - max(bottom, other_bottom) > 0.5 * height
    return times >= MIN_LINES


def _words(textpage: Any, height: float) -> list[Word]:
    """Return the pieces of a page's text in drawing order: lines, split at gaps."""
    import pypdfium2.raw as pdfium

    words: list[Word] = []
    box, text, is_over = Box(0, 0, 0, 0), "", False
    for index in range(textpage.count_chars()):
        character = chr(pdfium.FPDFText_GetUnicode(textpage.raw, index))
        left, bottom, right, top = textpage.get_charbox(index)
        if character in "\r\n":
            is_over = True
            continue
        if character.isspace():
            text += " " if text else ""
            continue
        here = Box(left, height - top, right, height - bottom)
        gap = max(here.left - box.right, box.left - here.right)
        is_over = is_over or min(box.bottom, here.bottom) <= max(box.top, here.top)
        if text and (is_over or gap > GAP * max(box.height, here.height)):
            words.append(Word(text.strip(), *astuple(box)))
            text = ""
        box, text, is_over = box.with_(here) if text else here, text + character, False
    return [*words, Word(text.strip(), *astuple(box))] if text.strip() else words


def _columns(words: Sequence[Word]) -> list[Word] | None:
    """Return the pieces column by column if they are columns of prose."""
    lines = [(word,) for word in sorted(words, key=lambda word: (word.top, word.left))]
    boxes = [box_of_word(word) for (word,) in lines]
    gutter = gutter_of(boxes)
    if gutter is None:
        return None
    sides = [[box for box in boxes if box.right <= gutter], [box for box in boxes if box.left > gutter]]
    for side in sides:
        if len(side) < MIN_LINES or median(box.width for box in side) < MIN_FILLED * max(box.width for box in side):
            return None
    return [word for line in in_reading_order(lines) for word in line]


def _place(field: Field, words: Sequence[Word]) -> int:
    """Return the index of the piece before which a field is read: after its label, or before it for a tick."""
    box = field.box
    beside = [(n, box_of_word(word)) for n, word in enumerate(words) if _share_row(box_of_word(word), box)]
    after = [(one.left - box.right, n) for n, one in beside if -1 <= one.left - box.right <= TICK_GAP * one.height]
    before = [(box.left - one.right, n) for n, one in beside if one.right <= box.left + 1]
    if field.is_tick and after and (not before or min(after) < min(before)):
        return min(after)[1]
    if before:
        return min(before)[1] + 1
    above = [
        (box.top - one.bottom, n)
        for n, one in enumerate(map(box_of_word, words))
        if -1 <= box.top - one.bottom <= LABEL_ABOVE * one.height and one.left < box.right and box.left < one.right
    ]
    return min(above)[1] + 1 if above else len(words)


def _share_row(one: Box, other: Box) -> bool:
    return min(one.bottom, other.bottom) - max(one.top, other.top) > 0.5 * min(one.height, other.height)


def _is_in(word: Word, box: Box) -> bool:
    return (
        box.left <= (word.left + word.right) / 2 <= box.right and box.top <= (word.top + word.bottom) / 2 <= box.bottom
    )
