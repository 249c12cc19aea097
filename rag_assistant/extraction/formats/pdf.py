"""Read PDF, page by page: text, filled-in forms and notes."""

from typing import Any

from msgspec.structs import replace

from rag_assistant.extraction.formats.attachments import Attachments, Read, read_attachments
from rag_assistant.extraction.formats.kinds import PDF
from rag_assistant.extraction.formats.markup import pages_of
from rag_assistant.extraction.formats.pdf_order import fields_of, ordered_text
from rag_assistant.extraction.formats.texts import clean
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

# The library's character for a hyphen at a line end: the word continues on the next line.
CUT_WORD = "\ufffe"
MAX_ATTACHMENTS = 100
# An empty page isn't a scan.
BLANK = " "


def read_pdf(content: bytes, read: Read) -> ExtractedText:
    """Return the text of a PDF, and which pages show something without text. Raises ExtractionFailed.

    ``read`` reads an attached file, whose text follows the last page.
    """
    import pypdfium2
    import pypdfium2.raw as pdfium

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
    texts = [_page(pdf, number) for number in range(count)]
    pages = [text or "" for text in texts]
    scans = tuple(n for n, text in enumerate(texts, 1) if text is not None and text != BLANK and not text.strip())
    broken = sum(text is None for text in texts)
    if broken and not scans and not any(page.strip() for page in pages):
        raise ExtractionFailed(f"This PDF is damaged: no page of {count} can be read.")
    blocks, unread = read_attachments(_attached(pdf), read)
    pages[-1] = "\n\n".join([pages[-1], *blocks]) if blocks else pages[-1]
    warnings = [f"{broken} of {count} pages are damaged and could not be read." if broken else None, *unread]
    return replace(pages_of(pages, PDF, " ".join(filter(None, warnings)) or None), scans=scans)


def _attached(pdf: Any) -> Attachments:
    """Return the files attached to a PDF; damaged ones have no content."""
    import pypdfium2

    attachments = []
    for number in range(min(pdf.count_attachments(), MAX_ATTACHMENTS)):
        attachment = pdf.get_attachment(number)
        try:
            attachments.append((attachment.get_name(), bytes(attachment.get_data())))
        except pypdfium2.PdfiumError:
            attachments.append((attachment.get_name(), b""))
    return attachments


def flattened_page(pdf: Any, number: int) -> Any:
    """Return a page, counted from 0, with forms and annotations flattened into it.

    If that fails, the page is unchanged. Raises PdfiumError.
    """
    import pypdfium2.raw as pdfium

    page = pdf[number]
    if pdfium.FPDFPage_Flatten(page.raw, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS:
        page = pdf[number]
    return page


def _page(pdf: Any, number: int) -> str | None:
    """Return the text of a page, ``None`` if it is damaged, which doesn't affect the others."""
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        fields = fields_of(pdf, pdf[number]) if pdf.formenv else []
        page = flattened_page(pdf, number)
        textpage = page.get_textpage()
        text = clean(ordered_text(page, textpage, fields) or textpage.get_text_range())
        if not text.strip() and pdfium.FPDFPage_CountObjects(page.raw) == 0:
            return BLANK
    except pypdfium2.PdfiumError:
        return None
    return text.replace(CUT_WORD + "\n", "").replace(CUT_WORD, "")
