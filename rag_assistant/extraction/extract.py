"""Read a document in a separate process, with limits on memory, CPU time and wall clock.

Hostile files are real, and can only break that process. Run as a program (``python -m rag_assistant.extraction.extract
FILE MEDIA_TYPE MEMORY_MB SECONDS``), this module is that process; it prints one line of JSON, followed by the text.
"""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import MsgspecError, convert
from msgspec.json import decode, encode
from msgspec.structs import replace

from rag_assistant.extraction.loaders import MARKDOWN, PLAIN, read_document, read_utf8
from rag_assistant.extraction.sandbox import confine, limit
from rag_assistant.extraction.sandbox_process import FAILED_CLEANLY, Limits, raise_for_end, run_confined
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.runtime.parent import end_with_parent

log = logging.getLogger(__name__)

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
    limits = Limits(memory_mb, timeout_seconds, MAX_OUTPUT_BYTES)
    output, status = run_confined(__spec__.name, [str(path), media_type], limits, cancelled=cancelled)
    return _checked(_understood(output, status, timeout_seconds))


def _understood(output: bytes, status: int, timeout_seconds: float) -> ExtractedText:
    """Return the result of a process with this exit status. Raises ExtractionFailed if it couldn't read the file."""
    raise_for_end(status, timeout_seconds)
    first, _, text = output.partition(b"\n")
    try:
        about = decode(first)
        if "failed" in about:
            raise ExtractionFailed(str(about["failed"])) from RuntimeError(str(about.get("cause")))
        return replace(convert(about, ExtractedText), text=text.decode())
    except (ValueError, TypeError, MsgspecError) as error:
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


def main(path: str, media_type: str, memory_mb: str, seconds: str) -> int:
    """Read one file under limits and print its text; return the exit status."""
    limit(int(memory_mb), int(seconds))
    confine(Path(path))
    try:
        extracted = _shortened(read_document(Path(path), media_type))
    except ExtractionFailed as error:
        print(json.dumps({"failed": str(error), "cause": repr(error.__cause__)[:500]}))
        return FAILED_CLEANLY
    about = encode(replace(extracted, text=""))
    sys.stdout.buffer.write(about + b"\n" + extracted.text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(*sys.argv[1:]))
