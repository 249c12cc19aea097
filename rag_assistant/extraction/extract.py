"""Read a document in a separate process, with limits on memory, CPU time and wall clock.

Hostile files are real, and can only break that process. It prints one line of JSON, followed by the text.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import MsgspecError
from msgspec.json import decode, encode
from msgspec.structs import replace

from rag_assistant.extraction.loaders import MARKDOWN, PLAIN, read_document, read_utf8
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
