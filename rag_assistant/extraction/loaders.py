"""Read the text of a document: the kind is known or is looked for in its container, and each kind has its reader.

``read_document`` meets hostile files. It runs in a process of its own (extraction.py), except for plain UTF-8 text.
"""

from __future__ import annotations

from pathlib import Path

from rag_assistant.errors import ExtractionFailed
from rag_assistant.extracted import ExtractedText
from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.kinds import DOCX, HTML, MARKDOWN, PDF, PLAIN, media_type_of
from rag_assistant.extraction.formats.texts import read_utf8

__all__ = ["DOCX", "HTML", "MARKDOWN", "PDF", "PLAIN", "media_type_of", "read_document", "read_utf8"]

PACKAGES = (kinds.ZIP, kinds.ODT, kinds.ODS, kinds.ODP, kinds.EPUB, kinds.DOCX, kinds.PPTX, kinds.XLSX)


def read_document(path: Path, media_type: str) -> ExtractedText:
    """Return the text of a file. Raises ExtractionFailed with a sentence about what was found."""
    try:
        return _read(path, media_type)
    except MemoryError as error:
        raise ExtractionFailed("Reading this file takes more memory than is allowed.") from error
    except RecursionError as error:
        raise ExtractionFailed("This file is nested too deeply to be read.") from error


def _read(path: Path, media_type: str) -> ExtractedText:
    from rag_assistant.extraction.formats.texts import read_csv, read_notebook, read_text

    if media_type in (PLAIN, MARKDOWN):
        return read_text(path, media_type)
    if media_type in (kinds.CSV, kinds.TSV):
        return read_csv(path, media_type)
    if media_type == kinds.NOTEBOOK:
        return read_notebook(path)
    if media_type == PDF:
        from rag_assistant.extraction.formats.pdf import read_pdf

        return read_pdf(path)
    if media_type in kinds.IMAGES:
        from rag_assistant.extraction.formats.images import read_image

        return read_image(path, media_type)
    if media_type in PACKAGES:
        return _read_package(path)
    if media_type == kinds.OLE:
        media_type = _kind_of_ole(path)
    from rag_assistant.extraction.formats.converted import read_converted

    return read_converted(path, media_type)


def _read_package(path: Path) -> ExtractedText:
    from rag_assistant.extraction.formats.converted import read_converted
    from rag_assistant.extraction.formats.opendocument import read_opendocument
    from rag_assistant.extraction.formats.packages import Package
    from rag_assistant.extraction.formats.slides import read_pptx
    from rag_assistant.extraction.formats.word import read_docx
    from rag_assistant.extraction.formats.workbooks import read_xlsx

    with Package(path) as package:
        kind = package.kind
        if kind == DOCX:
            extracted = read_docx(package)
        elif kind == kinds.PPTX:
            extracted = read_pptx(package)
        elif kind in (kinds.ODT, kinds.ODP):
            extracted = read_opendocument(package, kind)
        elif kind == kinds.XLSX:
            extracted = read_xlsx(package, path)
        else:
            package.unpack_in_vain()
            return read_converted(path, kind)
        if package.unread:
            told = f"{len(package.unread)} of {len(package.names)} parts of this file could not be read."
            warning = f"{extracted.warning} {told}" if extracted.warning else told
            return ExtractedText(extracted.text, kind, extracted.page_starts, extracted.markdown, warning)
        return extracted


def _kind_of_ole(path: Path) -> str:
    kind = kinds.kind_of_ole(path.read_bytes())
    if kind is None:
        raise ExtractionFailed("This is an Office file of a kind that cannot be read. Save it as DOCX or PDF.")
    if kind == kinds.XLSX:
        raise ExtractionFailed("This file has a password. Save it without one and add it again.")
    return kind
