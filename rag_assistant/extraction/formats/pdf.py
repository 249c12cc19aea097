"""Read PDF, page by page: text, filled-in forms and comments.

Where the drawing order isn't the reading order, it is put right: columns drawn row by row, and form entries, which
belong next to their labels.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from statistics import median
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
from msgspec import Struct
from msgspec.structs import astuple, replace

from rag_assistant.extraction.formats.attachments import Attachments, Read, read_attachments
from rag_assistant.extraction.formats.figures import Shown, figures_on, shown_on
from rag_assistant.extraction.formats.kinds import PDF
from rag_assistant.extraction.formats.markup import joined, pages_of
from rag_assistant.extraction.formats.packages import date_in
from rag_assistant.extraction.formats.texts import clean, is_misread, is_no_language
from rag_assistant.extraction.recognised import Box, box_of_word, gutter_of, in_reading_order, text_of
from rag_assistant.records.documents import ExtractedText, RecognisedPage, Word
from rag_assistant.records.errors import ExtractionFailed

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
    fields, height = [], page.get_height()
    for annotation in _annotations(page):
        rectangle = pdfium.FS_RECTF()
        kind = pdfium.FPDFAnnot_GetFormFieldType(pdf.formenv.raw, annotation)
        is_tick = kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
        text = ""
        if is_tick:
            text = "[x]" if pdfium.FPDFAnnot_IsChecked(pdf.formenv.raw, annotation) else "[ ]"
        elif kind in (pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
            text = _value(pdfium.FPDFAnnot_GetFormFieldValue, pdf.formenv.raw, annotation)
        if text.strip() and pdfium.FPDFAnnot_GetRect(annotation, rectangle):
            box = Box(rectangle.left, height - rectangle.top, rectangle.right, height - rectangle.bottom)
            fields.append(Field(box, " ".join(text.split()), is_tick))
    return fields


def _annotations(page: Any) -> Iterator[Any]:
    for number in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, number)
        yield annotation
        pdfium.FPDFPage_CloseAnnot(annotation)


def _value(get: Callable[..., int], *arguments: Any) -> str:
    """Return a text that the library writes into a buffer."""
    buffer = (ctypes.c_ushort * (MAX_VALUE_BYTES // 2))()
    length = get(*arguments, buffer, MAX_VALUE_BYTES)
    return bytes(buffer)[: min(length, MAX_VALUE_BYTES)].decode("utf-16-le", "ignore").rstrip("\0")


def comments_of(page: Any) -> list[str]:
    """Return what people noted on a page: each comment with its author, and the words that it marks."""
    comments, textpage = [], None
    for annotation in _annotations(page):
        points = pdfium.FS_QUADPOINTSF()
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        text, author = (_value(pdfium.FPDFAnnot_GetStringValue, annotation, name) for name in (b"Contents", b"T"))
        marked = ""
        for quad in range(pdfium.FPDFAnnot_CountAttachmentPoints(annotation)):
            if pdfium.FPDFAnnot_GetAttachmentPoints(annotation, quad, points):
                textpage = textpage or page.get_textpage()
                marked += textpage.get_text_bounded(points.x3, points.y3, points.x2, points.y2) + " "
        text = text.strip() or ("struck out" if marked and kind == pdfium.FPDF_ANNOT_STRIKEOUT else "")
        if text and kind not in (pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_LINK):
            by, on = author and f" by {author}", marked.strip() and f" on “{marked}”"
            comments.append(" ".join(f"Comment{by}{on}: {text}".split()).replace(" ”", "”"))
    return comments


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
    beside = [(n, box_of_word(word)) for n, word in enumerate(words) if box.is_beside(box_of_word(word))]
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


def _is_in(word: Word, box: Box) -> bool:
    return (
        box.left <= (word.left + word.right) / 2 <= box.right and box.top <= (word.top + word.bottom) / 2 <= box.bottom
    )


# The library's character for a hyphen at a line end: the word continues on the next line.
CUT_WORD = "\ufffe"
MAX_ATTACHMENTS = 100
LAYER = "OC\0"  # The mark of what is on a layer ("optional content").
# Of so many letters of a page, more than this share has no name in its font.
MAX_JUDGED, MAX_UNNAMED = 200, 0.3


def read_pdf(content: bytes, read: Read) -> ExtractedText:
    """Return the text of a PDF, and which pages show something without text. Raises ExtractionFailed.

    ``read`` reads an attached file, whose text follows the last page.
    """
    try:
        pdf = pypdfium2.PdfDocument(content)
        count = len(pdf)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise ExtractionFailed("This PDF has a password. Save it without one and add it again.") from error
        raise ExtractionFailed("This PDF is damaged and cannot be opened.") from error
    if not count:
        raise ExtractionFailed("This PDF is damaged: it has no pages.")
    if pdf.get_formtype() in (pdfium.FORMTYPE_ACRO_FORM, pdfium.FORMTYPE_XFA_FOREGROUND):
        pdf.init_forms()
    pages = [_page(pdf, number) for number in range(count)]
    scans = tuple(n for n, page in enumerate(pages, 1) if page.is_scan)
    broken, garbled = (sum(one) for one in zip(*((page.is_broken, page.is_garbled) for page in pages), strict=True))
    if broken and not scans and not any(page.text.strip() for page in pages):
        raise ExtractionFailed(f"This PDF is damaged: no page of {count} can be read.")
    attached = chain(
        (pdf.get_attachment(number) for number in range(pdf.count_attachments())), *(page.attached for page in pages)
    )
    blocks, unread = read_attachments(_contents(attached), read)
    texts = [page.text for page in pages]
    texts[-1] = "\n\n".join([texts[-1], *blocks]) if blocks else texts[-1]
    warnings = [
        f"Damaged pages that could not be read: {broken} of {count}." if broken else None,
        f"The text of {garbled} of {count} pages is in no known language: its letters may be wrong."
        if garbled
        else None,
        *unread,
    ]
    dates = {"properties": date_in(*map(pdf.get_metadata_value, ("CreationDate", "ModDate")))}
    merged = pages_of(texts, PDF, " ".join(filter(None, warnings)) or None)
    return replace(merged, scans=scans, figures=figures_on([page.shown for page in pages]), dates=dates)


def _contents(attached: Iterable[Any]) -> Attachments:
    """Return attached files with their names; damaged ones have no content."""
    attachments = []
    for attachment in islice(attached, MAX_ATTACHMENTS):
        try:
            attachments.append((attachment.get_name(), bytes(attachment.get_data())))
        except pypdfium2.PdfiumError:
            attachments.append((attachment.get_name(), b""))
    return attachments


def flattened_page(pdf: Any, number: int) -> Any:
    """Return a page, counted from 0, with forms and annotations flattened into it if possible. Raises PdfiumError."""
    page = pdf[number]
    if pdfium.FPDFPage_Flatten(page.raw, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS:
        page = pdf[number]
    return page


class Page(Struct, frozen=True):
    """A page's text and comments; a scan shows something without text, or letters that its font doesn't name."""

    text: str = ""
    attached: tuple[Any, ...] = ()
    is_broken: bool = False
    is_scan: bool = False
    is_garbled: bool = False
    shown: Shown = Shown()


def _page(pdf: Any, number: int) -> Page:
    """Return a page; a damaged one doesn't affect the others."""
    try:
        page, fields, comments, attached = pdf[number], list[Field](), list[str](), ()
        if pdfium.FPDFPage_GetAnnotCount(page.raw):
            fields = fields_of(pdf, page) if pdf.formenv else []
            comments = comments_of(page)
            files = map(pdfium.FPDFAnnot_GetFileAttachment, _annotations(page))
            attached = tuple(pypdfium2.PdfAttachment(file, pdf) for file in files if file)
            page = flattened_page(pdf, number)
        _remove_hidden_layers(page)
        textpage = page.get_textpage()
        text = clean(ordered_text(page, textpage, fields) or textpage.get_text_range())
        text = text.replace(CUT_WORD + "\n", "").replace(CUT_WORD, "")
        is_unnamed = _has_unnamed_letters(textpage) and is_misread(text)
        is_scan = is_unnamed or (not text.strip() and pdfium.FPDFPage_CountObjects(page.raw) > 0)
        shown = Shown() if is_scan else shown_on(page, textpage, text)
    except pypdfium2.PdfiumError:
        return Page(is_broken=True)
    # Text that was written onto the page is there already.
    beside = [one for one in comments if one.partition(": ")[2] not in " ".join(text.split())]
    whole = joined(["" if is_scan else text, *beside]) if beside else "" if is_scan else text
    return Page(whole, attached, is_scan=is_scan, is_garbled=not is_scan and is_no_language(text), shown=shown)


def _remove_hidden_layers(page: Any) -> None:
    """Remove text on a layer that leaves no trace on an image of the page: the layer is switched off."""
    texts = page.get_objects([pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_FORM], max_depth=1)
    layered = [one for one in texts if _is_on_layer(one)]
    if not layered:
        return
    bitmap = page.render(grayscale=True)
    pixels, position = bytes(bitmap.buffer), bitmap.get_posconv(page)
    for one in layered:
        left, bottom, right, top = one.get_bounds()
        ends = position.to_bitmap(left, bottom), position.to_bitmap(right, top)
        (left, right), (top, bottom) = (sorted(max(0, one) for one in both) for both in zip(*ends, strict=True))
        starts = (row * bitmap.stride for row in range(top, min(bottom + 1, bitmap.height)))
        if len({*chain(*(pixels[start + left : start + min(right + 1, bitmap.width)] for start in starts))}) == 1:
            page.remove_obj(one)


def _is_on_layer(one: Any) -> bool:
    name, length = (ctypes.c_ushort * len(LAYER))(), ctypes.c_ulong()
    for number in range(pdfium.FPDFPageObj_CountMarks(one.raw)):
        mark = pdfium.FPDFPageObj_GetMark(one.raw, number)
        read = pdfium.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), length)
        if read and bytes(name).decode("utf-16-le") == LAYER:
            return True
    return False


def _has_unnamed_letters(textpage: Any) -> bool:
    """Return whether many of a page's letters are only known by their numbers in a font."""
    count = textpage.count_chars()
    judged = range(0, count, max(1, count // MAX_JUDGED))
    unnamed = [index for index in judged if pdfium.FPDFText_HasUnicodeMapError(textpage.raw, index) == 1]
    return len(unnamed) > MAX_UNNAMED * len(judged)
