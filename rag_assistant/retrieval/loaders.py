"""Read the text of a document: what kind it is by its content, and how its kind is read.

``read_document`` meets hostile files. It runs in a process of its own (extraction.py), except for plain UTF-8 text.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from rag_assistant.errors import ExtractionFailed, UnsupportedDocument
from rag_assistant.records import ExtractedText

MARKDOWN = "text/markdown"
PLAIN = "text/plain"
HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown")
TAKEN = "text, Markdown, HTML, PDF and DOCX"
LARGEST_INFLATED_BYTES = 100_000_000
PAGE_BREAK = "\n\n"


def media_type_of(head: bytes, name: str) -> str:
    """Return the kind of a file from its first bytes; the name decides only between text and Markdown.

    Raises UnsupportedDocument for a kind from which no text can be read here.
    """
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return DOCX  # Whether it is one shows when it is opened.
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")) or (name.lower().endswith((".html", ".htm")) and b"<" in start):
        return HTML
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnsupportedDocument(f'"{name}" is not a kind of file that can be read here. Taken are {TAKEN}.')
    return MARKDOWN if name.lower().endswith(MARKDOWN_SUFFIXES) else PLAIN


def read_document(path: Path, media_type: str) -> ExtractedText:
    """Return the text of a file. Raises ExtractionFailed with a sentence about what was found."""
    try:
        if media_type == PDF:
            return _read_pdf(path)
        if media_type == DOCX:
            return ExtractedText(_markdown_of(_docx_as_html(path)), MARKDOWN)
        if media_type == HTML:
            return ExtractedText(_markdown_of(_decoded(path.read_bytes())), MARKDOWN)
        return ExtractedText(_decoded(path.read_bytes()), media_type)
    except MemoryError as error:
        raise ExtractionFailed("Reading this file takes more memory than is allowed.") from error


def read_utf8(path: Path) -> str | None:
    """Return the text of a file that is UTF-8, ``None`` if it is not."""
    try:
        return _clean(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def _read_pdf(path: Path) -> ExtractedText:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise ExtractionFailed("This PDF has a password. Save it without one and add it again.") from error
        raise ExtractionFailed("This PDF is damaged and cannot be opened.") from error
    text, starts = "", []
    for number in range(len(pdf)):
        starts.append(len(text))
        try:
            page_text = pdf[number].get_textpage().get_text_bounded()
        except pypdfium2.PdfiumError:
            page_text = ""  # A damaged page does not take the others with it.
        text += _clean(page_text) + PAGE_BREAK
    if not text.strip():
        raise ExtractionFailed(
            f"This PDF has no text on any page ({len(pdf)}): probably a scan. Run a text recognition on it first."
        )
    return ExtractedText(text, PDF, tuple(starts))


def _docx_as_html(path: Path) -> str:
    import mammoth

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "word/document.xml" not in names:
                raise ExtractionFailed(f"This is a ZIP archive but no DOCX document. Taken are {TAKEN}.")
            parts = [name for name in names if name.endswith((".xml", ".rels"))]
            if sum(archive.getinfo(name).file_size for name in parts) > LARGEST_INFLATED_BYTES:
                raise ExtractionFailed("This DOCX grows too large when it is unpacked.")
        with path.open("rb") as file:
            return str(mammoth.convert_to_html(file, convert_image=lambda _image: []).value)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ExtractionFailed("This DOCX is damaged and cannot be opened.") from error


def _markdown_of(html: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    page = BeautifulSoup(html, "html.parser")
    for element in page(["script", "style", "noscript", "template", "svg", "img", "head"]):
        element.decompose()
    text = _clean(MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(page))
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.strip()


def _decoded(content: bytes) -> str:
    try:
        return _clean(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        import charset_normalizer

        best = charset_normalizer.from_fp(io.BytesIO(content)).best()
        if best is None:
            raise ExtractionFailed("The encoding of this text could not be recognised. Save it as UTF-8.") from None
        return _clean(str(best))


def _clean(text: str) -> str:
    """Normalise line ends, and drop what no database or page takes."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").encode("utf-8", "ignore").decode()
