"""Read a document in a separate process, with limits on memory, CPU time and wall clock.

Hostile files are real, and can only break that process. It prints one line of JSON, followed by the text.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec import MsgspecError
from msgspec.json import decode, encode
from msgspec.structs import replace

from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.attachments import Read
from rag_assistant.extraction.formats.kinds import DOCX, MARKDOWN, PDF, PLAIN
from rag_assistant.extraction.formats.texts import read_csv, read_notebook, read_text, read_utf8
from rag_assistant.extraction.sandbox_process import Limits, confined
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

MAX_CHARS = 20_000_000
# The longest text with four bytes a character, and the line before it.
MAX_OUTPUT_BYTES = 4 * MAX_CHARS + 10_000_000


def extract(
    path: Path,
    media_type: str,
    *,
    memory_mb: int,
    timeout_seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> ExtractedText:
    """Return the text of a file. Raises ExtractionFailed with a sentence about what was found.

    ``cancelled`` is polled several times a second; once it returns True, ExtractionCancelled is raised.
    """
    if media_type in (PLAIN, MARKDOWN):
        text = read_utf8(path.read_bytes())
        if text is not None:
            return _checked(ExtractedText(text, media_type, markdown=media_type == MARKDOWN))
    limits = Limits(memory_mb, timeout_seconds, MAX_OUTPUT_BYTES, cancelled)
    first, _, content = b"".join(confined(__name__, path, [media_type], limits)).partition(b"\n")
    try:
        return _checked(replace(decode(first, type=ExtractedText), text=content.decode()))
    except (ValueError, MsgspecError) as error:
        raise ExtractionFailed("Reading this file failed: the result made no sense.") from error


def _checked(extracted: ExtractedText) -> ExtractedText:
    """Return a text within the limit, with a warning if its end was cut off; empty only if all pages are scans."""
    if not extracted.text.strip() and not extracted.scans:
        raise ExtractionFailed(" ".join(filter(None, ["There is no text in this file.", extracted.warning])))
    return _shortened(extracted)


def _shortened(extracted: ExtractedText) -> ExtractedText:
    length = len(extracted.text)
    if length <= MAX_CHARS:
        return extracted
    notice = f"Only the first {MAX_CHARS} of {length} characters were read. Split the file to add all of it."
    return replace(
        extracted,
        text=extracted.text[:MAX_CHARS],
        page_starts=tuple(start for start in extracted.page_starts if start < MAX_CHARS),
        warning=" ".join(filter(None, [extracted.warning, notice])),
    )


def work(path: Path, media_type: str) -> Iterator[bytes]:
    """Yield what is known about a file, then its text. Raises ExtractionFailed."""
    extracted = _shortened(read_document(path, media_type))
    yield encode(replace(extracted, text="")) + b"\n" + extracted.text.encode("utf-8", "replace")


# Mails may be attached to mails that are attached to mails, and so on; documents may contain others, too.
MAX_AROUND = 4
PACKAGES = (kinds.ZIP, kinds.ODT, kinds.ODS, kinds.ODP, kinds.EPUB, kinds.DOCX, kinds.PPTX, kinds.XLSX)


def read_document(path: Path, media_type: str) -> ExtractedText:
    """Return the text of a file, read in this process. Raises ExtractionFailed with a sentence about what was found."""
    try:
        return _read(path.read_bytes(), media_type)
    except MemoryError as error:
        raise ExtractionFailed("Reading this file takes more memory than is allowed.") from error
    except RecursionError as error:
        raise ExtractionFailed("This file is nested too deeply to be read.") from error


def _read(content: bytes, media_type: str, around: int = 0) -> ExtractedText:
    if around > MAX_AROUND:
        raise ExtractionFailed("This document is nested too deeply in other documents.")
    read = partial(_read, around=around + 1)
    if media_type in (PLAIN, MARKDOWN):
        return read_text(content, media_type)
    if media_type in (kinds.CSV, kinds.TSV):
        return read_csv(content, media_type)
    if media_type == kinds.NOTEBOOK:
        return read_notebook(content, _read)
    if media_type == PDF:
        from rag_assistant.extraction.formats.pdf import read_pdf

        return read_pdf(content, read)
    if media_type in kinds.IMAGES:
        from rag_assistant.extraction.formats.images import read_image

        return read_image(content, media_type)
    if media_type in PACKAGES:
        return _read_package(content, read)
    if media_type == kinds.OLE:
        media_type = kinds.kind_of_ole(content)
    if media_type == kinds.XLS:
        from rag_assistant.extraction.formats.other_workbooks import read_xls

        return read_xls(content)
    if media_type in (kinds.EML, kinds.MSG, kinds.MBOX):
        from rag_assistant.extraction.formats.mails import read_mail, read_mailbox

        return read_mailbox(content, read) if media_type == kinds.MBOX else read_mail(content, media_type, read)
    from rag_assistant.extraction.formats.converted import read_converted

    return read_converted(content, media_type)


def _read_package(content: bytes, read: Read) -> ExtractedText:
    from rag_assistant.extraction.formats.converted import read_converted
    from rag_assistant.extraction.formats.opendocument import read_opendocument
    from rag_assistant.extraction.formats.other_workbooks import read_ods
    from rag_assistant.extraction.formats.packages import Package
    from rag_assistant.extraction.formats.slides import read_pptx
    from rag_assistant.extraction.formats.word import read_docx
    from rag_assistant.extraction.formats.workbooks import read_xlsx

    package = Package(content)
    kind = package.kind
    if kind == DOCX:
        extracted = read_docx(package, read)
    elif kind == kinds.PPTX:
        extracted = read_pptx(package)
    elif kind in (kinds.ODT, kinds.ODP):
        extracted = read_opendocument(package, kind)
    elif kind == kinds.XLSX:
        extracted = read_xlsx(package, content)
    elif kind == kinds.ODS:
        extracted = read_ods(package)
    else:
        package.unpack_in_vain()
        return read_converted(content, kind)
    extracted = replace(extracted, dates={"properties": package.date})
    if package.unread:
        unread = f"{len(package.unread)} of {len(package.names)} parts of this file could not be read."
        return replace(extracted, warning=f"{extracted.warning} {unread}" if extracted.warning else unread)
    return extracted
