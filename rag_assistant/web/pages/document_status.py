"""A document in words: what kind of file it is, how large, and how far it has come."""

from __future__ import annotations

from rag_assistant.extraction.formats import kinds
from rag_assistant.records import Document, DocumentState

KINDS = {
    kinds.PLAIN: "Text", kinds.MARKDOWN: "Markdown", kinds.CSV: "CSV table", kinds.TSV: "TSV table",
    kinds.HTML: "Web page", kinds.EML: "Email", kinds.MSG: "Email", kinds.NOTEBOOK: "Notebook", kinds.PDF: "PDF",
    kinds.RTF: "RTF", kinds.EPUB: "E-book", kinds.ODT: "OpenDocument text", kinds.ODS: "OpenDocument workbook",
    kinds.ODP: "OpenDocument slides", kinds.DOCX: "Word", kinds.DOC: "Word", kinds.PPTX: "PowerPoint",
    kinds.PPT: "PowerPoint", kinds.XLSX: "Excel", kinds.XLS: "Excel", kinds.ZIP: "ZIP archive",
    kinds.OLE: "Office file", kinds.PNG: "Image", kinds.JPEG: "Image", kinds.TIFF: "Image", kinds.WEBP: "Image",
}  # fmt: skip
# What a container is called until it is looked into, by the end of its name.
SUFFIXES = {
    "docx": kinds.DOCX, "docm": kinds.DOCX, "dotx": kinds.DOCX, "pptx": kinds.PPTX, "pptm": kinds.PPTX,
    "xlsx": kinds.XLSX, "xlsm": kinds.XLSX, "doc": kinds.DOC, "ppt": kinds.PPT, "xls": kinds.XLS, "msg": kinds.MSG,
    "odt": kinds.ODT, "ods": kinds.ODS, "odp": kinds.ODP, "epub": kinds.EPUB,
}  # fmt: skip
SLIDES = (kinds.PPTX, kinds.PPT, kinds.ODP)
STATES = {"reading": "processing"}
# By which states a list is filtered, under one name each; the empty name is for all.
STATE_FILTERS: dict[str, tuple[DocumentState, ...]] = {
    "": (),
    "ready": ("ready",),
    "processing": ("queued", "reading", "recognising", "embedding"),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def kind_of(document: Document) -> str:
    """Return what kind of file a document is, with its pages where it has some: "PDF, 12 pages"."""
    media_type = document.media_type
    if media_type in (kinds.ZIP, kinds.OLE):
        media_type = SUFFIXES.get(document.name.lower().rpartition(".")[2], media_type)
    kind = KINDS.get(media_type, "File")
    if not document.pages:
        return kind
    word = "slide" if document.media_type in SLIDES else "page"
    return f"{kind}, {document.pages} {word}{'' if document.pages == 1 else 's'}"


def is_askable(document: Document) -> bool:
    """Tell whether a question about a document alone makes sense: it has a text, and is no version that waits."""
    return not document.replaces and (document.chunks > 0 or document.state not in ("failed", "cancelled"))


def size_of(document: Document) -> str:
    """Return how large a document's file is: "820 bytes", "1.4 MB"."""
    return in_units(document.size_bytes)


def in_units(size_bytes: int) -> str:
    """Return a size in words."""
    for unit, name in UNITS:
        if size_bytes >= unit:
            size = size_bytes / unit
            return f"{size:.1f} {name}" if size < 10 else f"{size:.0f} {name}"
    return f"{size_bytes} byte{'' if size_bytes == 1 else 's'}"


def state_of(document: Document) -> str:
    """Return in words how far a document has come."""
    if document.state == "embedding":
        # A newer version is not found at all before it is ready.
        searchable = "" if document.replaces else "searchable by keyword; "
        return f"{searchable}indexing {document.embedded} of {document.chunks}"
    if document.state == "recognising":
        searchable = "searchable; " if document.chunks and not document.replaces else ""
        return f"{searchable}recognising text, page {document.recognised_pages} of {document.scanned_pages}"
    return STATES.get(document.state, document.state)
