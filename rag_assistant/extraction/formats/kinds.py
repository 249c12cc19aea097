"""Recognise the kind of a file from its content. Its name only distinguishes kinds of text."""

import re
import struct

from rag_assistant.extraction.formats import DATA
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

PLAIN = "text/plain"
MARKDOWN = "text/markdown"
CSV = "text/csv"
TSV = "text/tab-separated-values"
HTML = "text/html"
EML = "message/rfc822"
MBOX = "application/mbox"
NOTEBOOK = "application/x-ipynb+json"
PDF = "application/pdf"
RTF = "application/rtf"
ZIP = "application/zip"
OLE = "application/x-ole-storage"
EPUB = "application/epub+zip"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
DOC = "application/msword"
XLS = "application/vnd.ms-excel"
PPT = "application/vnd.ms-powerpoint"
MSG = "application/vnd.ms-outlook"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"
WEBP = "image/webp"
# Images, whose text is recognised.
IMAGES = (PNG, JPEG, TIFF, WEBP)

SUPPORTED = (
    "text, Markdown, HTML, PDF, Word, PowerPoint, Excel, OpenDocument, RTF, EPUB, email, notebooks, CSV, code and "
    "images (PNG, JPEG, TIFF, WebP)"
)
SUFFIXES = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".mdown": MARKDOWN, ".csv": CSV, ".tsv": TSV, ".ipynb": NOTEBOOK,
}  # fmt: skip
PICTURE, SOUND, PROGRAM, ARCHIVE = "an image", "audio or video", "a program", "an archive"
DATABASE, FONT = "a database", "a font"
OLE_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MARKS = {OLE_MARK: OLE, b"\x89PNG\r\n": PNG, b"\xff\xd8\xff": JPEG, b"II*\0": TIFF, b"MM\0*": TIFF}
# Kinds without readable text, by their first bytes. Two letters prove nothing in a text.
KINDS = {"picture": PICTURE, "sound": SOUND, "program": PROGRAM, "archive": ARCHIVE, "database": DATABASE, "font": FONT}
REFUSED = {bytes.fromhex(mark): KINDS[name] for name, marks in DATA["refused_marks"].items() for mark in marks.split()}
BINARY_ONLY = tuple(map(bytes.fromhex, DATA["marks_of_binary_files_only"].split()))
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
MAX_CONTROL_SHARE = 0.05
UNKNOWN_OFFICE_FILE = "This is an Office file of a kind that cannot be read. Save it as DOCX or PDF."
MAIL_HEADER = re.compile(
    rb"^(from|to|cc|subject|date|received|return-path|delivered-to|message-id|mime-version|reply-to|x-[\w-]+):", re.I
)
ANY_HEADER = re.compile(rb"^[!-9;-~]+:|^[ \t]")


def media_type_of(content: bytes, name: str) -> str:
    """Return the kind of a file from its first bytes, or that of its container, which is examined later.

    Raises UnsupportedDocument for a kind without readable text.
    """
    head = content[:4096]
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        # OpenDocument and EPUB start with their kind, uncompressed.
        named = (kind for kind in (ODT, ODS, ODP, EPUB) if head.startswith(b"mimetype" + kind.encode(), 30))
        return next(named, ZIP)
    for mark, kind in MARKS.items():
        if head.startswith(mark):
            return kind
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    _refuse_what_is_known(head, name)
    encoding = wide_encoding(head)
    if encoding is None:
        control = sum(byte < 32 and byte not in b"\t\n\r\f\x0b\x1b\x1a" for byte in head)
        if b"\0" in head or control > len(head) * MAX_CONTROL_SHARE:
            raise _unsupported(name)
    else:
        # A character cut in two at the end is left out.
        head = head.decode(encoding, "ignore").encode("utf-8", "ignore")
    return _kind_of_text(head, name)


def is_archive(name: str) -> bool:
    """Return whether a file is to be unpacked, by its name: many documents are ZIP archives, too."""
    return name.lower().endswith(".zip")


def wide_encoding(head: bytes) -> str | None:
    """Return the encoding of text with two or four bytes a character, ``None`` if it isn't one."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith(UTF16_MARKS):
        return "utf-16"
    pairs = len(head) // 2
    if pairs < 4 or b"\0" not in head:
        return None
    # Western text without a byte order mark has its zeros on one side only.
    even, odd = head[0 : pairs * 2 : 2].count(0), head[1 : pairs * 2 : 2].count(0)
    if odd > pairs * 0.4 and even < pairs * 0.02:
        return "utf-16-le"
    if even > pairs * 0.4 and odd < pairs * 0.02:
        return "utf-16-be"
    return None


def kind_of_package(names: set[str], mimetype: str) -> str | None:
    """Return the kind of a document that is a ZIP archive of these members, ``None`` if it is unknown."""
    declared = mimetype.strip().removesuffix("-template")
    if declared in (ODT, ODS, ODP, EPUB):
        return declared
    for folder, kind in (("word/", DOCX), ("ppt/", PPTX), ("xl/", XLSX)):
        if any(name.startswith(folder) for name in names):
            return kind
    return EPUB if "META-INF/container.xml" in names else None


def kind_of_ole(content: bytes) -> str:
    """Return the kind of an OLE file from the first known stream in its directory. Raises ExtractionFailed."""
    streams = {
        "WordDocument": DOC, "Workbook": XLS, "Book": XLS, "PowerPoint Document": PPT, "__properties_version1.0": MSG,
        "EncryptedPackage": XLSX,  # An OOXML file with a password.
    }  # fmt: skip
    if len(content) < 512:
        raise ExtractionFailed(UNKNOWN_OFFICE_FILE)
    (shift,), (sector,) = struct.unpack_from("<H", content, 0x1E), struct.unpack_from("<I", content, 0x30)
    start = (sector + 1) << min(shift, 12)
    if start >= len(content):
        start = 512
    kind_at: dict[int, str] = {}
    for name, kind in streams.items():
        needle = name.encode("utf-16-le") + b"\0\0"
        at = content.find(needle, start)
        at = at if at >= 0 else content.find(needle)
        if at >= 0:
            kind_at.setdefault(at, kind)
    if not kind_at:
        raise ExtractionFailed(UNKNOWN_OFFICE_FILE)
    kind = kind_at[min(kind_at)]
    if kind == XLSX:
        raise ExtractionFailed("This file has a password. Save it without one and add it again.")
    return kind


def _refuse_what_is_known(head: bytes, name: str) -> None:
    zeros, is_tar = b"\0" in head, head[257:262] == b"ustar"
    for start, what in ({head[:1]: ARCHIVE} if is_tar else REFUSED).items():
        if head.startswith(start) and (zeros or start not in BINARY_ONLY):
            hint = " Unpack it and add what is in it." if what == ARCHIVE else ""
            raise UnsupportedDocument(
                f'"{name}" is {what}, which has no text to read.{hint} Supported formats: {SUPPORTED}.'
            )


def _unsupported(name: str) -> UnsupportedDocument:
    return UnsupportedDocument(f'"{name}" isn\'t a supported file type. Supported formats: {SUPPORTED}.')


def _kind_of_text(head: bytes, name: str) -> str:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lower = start.lower()
    suffix = "." + name.lower().rsplit(".", 1)[-1]
    if start.startswith(b"{\\rtf"):
        return RTF
    if b"urn:schemas-microsoft-com:office:spreadsheet" in lower and b"<workbook" in lower:
        raise _unsupported(name)
    if (
        _is_html(lower)
        or (suffix in (".html", ".htm", ".xhtml") and b"<" in lower)
        or (suffix in (".doc", ".xls") and re.match(rb"<(?:meta|style|table|div|!--)", lower))
    ):
        return HTML
    if _is_mail(start):
        return EML
    if start.startswith(b"From ") and _is_mail(start.partition(b"\n")[2]):
        return MBOX
    if start.startswith(b"{") and re.search(rb'"cell_type"\s*:', start):
        return NOTEBOOK
    return SUFFIXES.get(suffix, PLAIN)


def _is_html(start: bytes) -> bool:
    """Return whether a text begins like HTML, after an XML declaration and comments."""
    start = re.sub(rb"\A(\s*<\?xml[^>]*>|\s*<!--.*?-->)+\s*", b"", start, flags=re.DOTALL)
    return start.startswith((b"<!doctype html", b"<html", b"<head>", b"<body"))


def _is_mail(start: bytes) -> bool:
    """Return whether a text begins with header lines, two of which are specific to mails."""
    seen = set()
    for line in start.splitlines()[:40]:
        if not line or not ANY_HEADER.match(line):
            break
        if match := MAIL_HEADER.match(line):
            seen.add(match[1].lower())
    return len(seen) >= 2 and bool(seen & {b"from", b"received", b"return-path", b"message-id", b"mime-version"})
