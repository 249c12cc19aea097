"""Read a document in a process of its own, under limits of memory, CPU time and wall clock.

Hostile files are real: what they break is that process. As a program (``python -m rag_assistant.retrieval.extraction
FILE MEDIA_TYPE MEMORY_MB SECONDS``) this module is that process; it prints the text as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

from rag_assistant.children import end_with_parent, plain_environment
from rag_assistant.errors import ExtractionFailed
from rag_assistant.records import ExtractedText
from rag_assistant.retrieval.loaders import MARKDOWN, PLAIN, read_document, read_utf8

FAILED_CLEANLY = 3
MOST_CHARACTERS = 20_000_000


def extract(path: Path, media_type: str, *, memory_mb: int, timeout_seconds: float) -> ExtractedText:
    """Return the text of a file. Raises ExtractionFailed with a sentence about what was found."""
    if media_type in (PLAIN, MARKDOWN):
        text = read_utf8(path)
        if text is not None:
            return _not_empty(ExtractedText(text, media_type))
    program = [
        sys.executable,
        "-m",
        __spec__.name,
        str(path),
        media_type,
        str(memory_mb),
        str(int(timeout_seconds) + 1),
    ]
    process = subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=plain_environment(),
    )
    try:
        output, _ = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired as error:
        raise ExtractionFailed(f"Reading this file took longer than {timeout_seconds:g} seconds.") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode not in (0, FAILED_CLEANLY):
        raise ExtractionFailed("Reading this file failed: it is damaged, or it needs more memory or time than allowed.")
    found = json.loads(output)
    if "failed" in found:
        raise ExtractionFailed(found["failed"])
    return _not_empty(ExtractedText(found["text"], found["media_type"], tuple(found["page_starts"])))


def _not_empty(extracted: ExtractedText) -> ExtractedText:
    if len(extracted.text) > MOST_CHARACTERS:
        raise ExtractionFailed(
            f"This file holds {len(extracted.text)} characters of text; at most {MOST_CHARACTERS} are read. Cut it up."
        )
    if not extracted.text.strip():
        raise ExtractionFailed("There is no text in this file.")
    return extracted


def main(path: str, media_type: str, memory_mb: str, seconds: str) -> int:
    """Read one file under limits and print its text; return the exit status."""
    end_with_parent()
    memory_bytes = int(memory_mb) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        extracted = read_document(Path(path), media_type)
    except ExtractionFailed as error:
        print(json.dumps({"failed": str(error)}))
        return FAILED_CLEANLY
    print(
        json.dumps(
            {"text": extracted.text, "media_type": extracted.media_type, "page_starts": list(extracted.page_starts)}
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
