"""Read a document in a process of its own, under limits of memory, CPU time and wall clock.

Hostile files are real: what they break is that process. As a program (``python -m rag_assistant.retrieval.extraction
FILE MEDIA_TYPE MEMORY_MB SECONDS``) this module is that process; it prints one line of JSON, and the text behind it.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rag_assistant.children import end_with_parent, plain_environment
from rag_assistant.errors import ExtractionCancelled, ExtractionFailed
from rag_assistant.records import ExtractedText
from rag_assistant.retrieval.confinement import confine, limit
from rag_assistant.retrieval.loaders import MARKDOWN, PLAIN, read_document, read_utf8

log = logging.getLogger(__name__)

FAILED_CLEANLY = 3
MOST_CHARACTERS = 20_000_000
# The longest text with four bytes a character, and the line before it.
MOST_OUTPUT_BYTES = 4 * MOST_CHARACTERS + 10_000_000
BYTES_AT_ONCE = 1 << 16
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_END = 5.0
TOO_MUCH_MEMORY = "Reading this file takes more memory than is allowed."


def extract(
    path: Path,
    media_type: str,
    *,
    memory_mb: int,
    timeout_seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> ExtractedText:
    """Return the text of a file. Raises ExtractionFailed with a sentence about what was found.

    ``cancelled`` is asked several times a second; once it says yes, ExtractionCancelled is raised.
    """
    if media_type in (PLAIN, MARKDOWN):
        text = read_utf8(path)
        if text is not None:
            return _checked(ExtractedText(text, media_type, markdown=media_type == MARKDOWN))
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, str(path), media_type, str(memory_mb), str(int(timeout_seconds) + 1)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=plain_environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        output = _output(process, time.monotonic() + timeout_seconds, timeout_seconds, cancelled)
    except BaseException:
        _end(process, 0.0)
        raise
    _end(process, SECONDS_TO_END)
    return _checked(_understood(output, process.returncode, timeout_seconds))


def _output(
    process: subprocess.Popen[bytes], deadline: float, timeout_seconds: float, cancelled: Callable[[], bool]
) -> bytes:
    """Return all that the process prints. Raises ExtractionFailed if it takes too long or prints too much."""
    assert process.stdout is not None  # noqa: S101 - it was opened above, which the type checker cannot know
    pieces: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if cancelled():
                raise ExtractionCancelled
            if time.monotonic() > deadline:
                raise ExtractionFailed(f"Reading this file took longer than {timeout_seconds:g} seconds.")
            if not selector.select(SECONDS_BETWEEN_LOOKS):
                continue
            piece = os.read(process.stdout.fileno(), BYTES_AT_ONCE)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
            if size > MOST_OUTPUT_BYTES:
                raise ExtractionFailed("This file turned into more text than can be kept. Cut it up.")


def _end(process: subprocess.Popen[bytes], patience_seconds: float) -> None:
    """End the process with all that it started, and reap it; for so long it may end by itself."""
    until = time.monotonic() + patience_seconds
    # It is left unreaped until its group is killed, so that its number cannot be another's by then.
    options = os.WEXITED | os.WNOWAIT | os.WNOHANG
    while time.monotonic() < until and os.waitid(os.P_PID, process.pid, options) is None:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _understood(output: bytes, status: int, timeout_seconds: float) -> ExtractedText:
    """Return what a process printed before it ended so. Raises ExtractionFailed if it could not read the file."""
    if status not in (0, FAILED_CLEANLY):
        raise ExtractionFailed(_sentence(status, timeout_seconds))
    first, _, text = output.partition(b"\n")
    try:
        found = json.loads(first)
        if "failed" in found:
            raise ExtractionFailed(str(found["failed"])) from RuntimeError(str(found.get("cause")))
        starts = tuple(int(start) for start in found["page_starts"])
        return ExtractedText(text.decode(), found["media_type"], starts, found["markdown"], found["warning"])
    except (ValueError, KeyError, TypeError) as error:
        raise ExtractionFailed("Reading this file failed: what came out of it made no sense.") from error


def _sentence(status: int, timeout_seconds: float) -> str:
    """Return what the end of a process says about the file."""
    if -status == signal.SIGXCPU:
        return f"Reading this file took longer than {timeout_seconds:g} seconds."
    if -status == signal.SIGABRT:
        return f"{TOO_MUCH_MEMORY} It may be damaged."
    if -status == signal.SIGKILL:
        return "Reading this file was ended from outside, as happens when the machine runs out of memory or time."
    if status < 0:
        return "Reading this file made its reader crash: it is damaged, or made to do harm."
    return "Reading this file failed: it is damaged, or it needs more memory or time than allowed."


def _checked(extracted: ExtractedText) -> ExtractedText:
    """Return a text that is not empty and not too long, with a warning if its end was cut off."""
    if not extracted.text.strip():
        raise ExtractionFailed(" ".join(filter(None, ["There is no text in this file.", extracted.warning])))
    return _shortened(extracted)


def _shortened(extracted: ExtractedText) -> ExtractedText:
    length = len(extracted.text)
    if length <= MOST_CHARACTERS:
        return extracted
    said = f"Only the first {MOST_CHARACTERS} of {length} characters were read. Cut the file up to have all of it."
    return replace(
        extracted,
        text=extracted.text[:MOST_CHARACTERS],
        page_starts=tuple(start for start in extracted.page_starts if start < MOST_CHARACTERS),
        warning=" ".join(filter(None, [extracted.warning, said])),
    )


def main(path: str, media_type: str, memory_mb: str, seconds: str) -> int:
    """Read one file under limits and print its text; return the exit status."""
    end_with_parent()
    limit(int(memory_mb), int(seconds))
    confine()
    try:
        extracted = _shortened(read_document(Path(path), media_type))
    except ExtractionFailed as error:
        print(json.dumps({"failed": str(error), "cause": repr(error.__cause__)[:500]}))
        return FAILED_CLEANLY
    about = {
        "media_type": extracted.media_type,
        "page_starts": list(extracted.page_starts),
        "markdown": extracted.markdown,
        "warning": extracted.warning,
    }
    sys.stdout.buffer.write(json.dumps(about).encode() + b"\n" + extracted.text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
