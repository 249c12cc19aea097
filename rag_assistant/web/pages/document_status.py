"""A document's kind, size and progress in words."""

from rag_assistant.documents.reading import RECOGNITION_MISSING, RECOGNITION_OFF
from rag_assistant.extraction.formats import kinds
from rag_assistant.records import Document, DocumentState
from rag_assistant.web.i18n.languages import N_
from rag_assistant.web.identity import identity
from rag_assistant.web.languages import gettext, ngettext, number, translated
from rag_assistant.web.routing import services

KINDS = {
    kinds.PLAIN: N_("Text"), kinds.MARKDOWN: "Markdown", kinds.CSV: N_("CSV table"), kinds.TSV: N_("TSV table"),
    kinds.HTML: N_("Web page"), kinds.EML: N_("Email"), kinds.MSG: N_("Email"), kinds.MBOX: N_("Mailbox"),
    kinds.NOTEBOOK: N_("Notebook"),
    kinds.PDF: "PDF", kinds.RTF: "RTF", kinds.EPUB: N_("E-book"), kinds.ODT: N_("OpenDocument text"),
    kinds.ODS: N_("OpenDocument workbook"), kinds.ODP: N_("OpenDocument slides"), kinds.DOCX: "Word",
    kinds.DOC: "Word", kinds.PPTX: "PowerPoint", kinds.PPT: "PowerPoint", kinds.XLSX: "Excel", kinds.XLS: "Excel",
    kinds.ZIP: N_("ZIP archive"), kinds.OLE: N_("Office file"), kinds.PNG: N_("Image"), kinds.JPEG: N_("Image"),
    kinds.TIFF: N_("Image"), kinds.WEBP: N_("Image"),
}  # fmt: skip
# Names of containers until they are examined, by file extension.
SUFFIXES = {
    "docx": kinds.DOCX, "docm": kinds.DOCX, "dotx": kinds.DOCX, "pptx": kinds.PPTX, "pptm": kinds.PPTX,
    "xlsx": kinds.XLSX, "xlsm": kinds.XLSX, "doc": kinds.DOC, "ppt": kinds.PPT, "xls": kinds.XLS, "msg": kinds.MSG,
    "odt": kinds.ODT, "ods": kinds.ODS, "odp": kinds.ODP, "epub": kinds.EPUB,
}  # fmt: skip
SLIDES = (kinds.PPTX, kinds.PPT, kinds.ODP)
STATES: dict[DocumentState, str] = {
    "queued": N_("queued"),
    "reading": N_("processing"),
    "ready": N_("ready"),
    "failed": N_("failed"),
    "cancelled": N_("cancelled"),
}
# List filters, each with its states; the empty name is for all but those that could not be read.
STATE_FILTERS: dict[str, tuple[DocumentState, ...]] = {
    "": ("queued", "reading", "recognising", "embedding", "ready", "cancelled"),
    "ready": ("ready",),
    "processing": ("queued", "reading", "recognising", "embedding"),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
# How a reason begins that another attempt at the same bytes would give again.
FILE_AT_FAULT = "This ", "There is no ", "None of "
RECOGNITION = "Text recognition is "
ASK_ADMINISTRATOR = N_("Ask your administrator to switch on text recognition.")
UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def kind_of(document: Document) -> str:
    """Return a document's kind, with its pages if it has some: "PDF, 12 pages"."""
    media_type = document.media_type
    if media_type in (kinds.ZIP, kinds.OLE):
        media_type = SUFFIXES.get(document.name.lower().rpartition(".")[2], media_type)
    kind = gettext(KINDS.get(media_type, N_("File")))
    if not document.pages:
        return kind
    if document.media_type in SLIDES:
        return f"{kind}, {ngettext('{n} slide', '{n} slides', document.pages)}"
    return f"{kind}, {ngettext('{n} page', '{n} pages', document.pages)}"


def is_askable(document: Document) -> bool:
    """Return whether a document can be asked about: it has text, and isn't a pending version."""
    return not document.replaces and (document.chunks > 0 or document.state not in ("failed", "cancelled"))


def is_retryable(document: Document) -> bool:
    """Return whether reading the same file once more may succeed."""
    reason = document.reason or ""
    if RECOGNITION in reason:
        is_hopeless = services().settings.current.ocr == "off"
    else:
        is_hopeless = reason.startswith(FILE_AT_FAULT)
    return document.state == "cancelled" or (document.state == "failed" and not is_hopeless)


def reason_of(document: Document) -> str:
    """Return a document's reason, with what the person who reads it can do."""
    reason = document.reason or ""
    if not identity().may_manage:
        for switched in (RECOGNITION_OFF, RECOGNITION_MISSING):
            reason = reason.replace(switched, ASK_ADMINISTRATOR)
    return translated(reason)


def in_units(size_bytes: int) -> str:
    """Return a file's size: "820 bytes", "1.4 MB"."""
    for unit, name in UNITS:
        if size_bytes >= unit:
            size = size_bytes / unit
            return f"{number(size, 1 if size < 10 else 0)} {name}"
    return ngettext("{n} byte", "{n} bytes", size_bytes)


def state_of(document: Document) -> str:
    """Return a document's progress in words."""
    if document.state == "embedding":
        # A newer version isn't found at all before it is ready.
        searchable = "" if document.replaces else f"{gettext('searchable by keyword')}; "
        return searchable + gettext("indexing {n} of {count}", n=document.embedded, count=document.chunks)
    if document.state == "recognising":
        searchable = f"{gettext('searchable')}; " if document.chunks and not document.replaces else ""
        page, count = document.recognised_pages, document.scanned_pages
        return searchable + gettext("recognising text, page {n} of {count}", n=page, count=count)
    return gettext(STATES[document.state])
