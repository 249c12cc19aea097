"""Reads files in the process of a test: to start one for each takes longer than to add a document.

The recognition of text, which is native code for seconds, keeps its own.
"""

import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

import pytest

from rag_assistant.extraction.sandbox_process import confined

READERS = ("conversations.exchange.files", "extraction.archives", "extraction.extract", "extraction.page_render")
_reading = threading.Lock()  # PDFium is for one thread at a time.


def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what reads files do so in this process."""
    for module in READERS:
        monkeypatch.setattr(f"rag_assistant.{module}.confined", _unconfined)


def read_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it start confined processes, as ever."""
    for module in READERS:
        monkeypatch.setattr(f"rag_assistant.{module}.confined", confined)


def _unconfined(module: str, file: Path | IO[bytes], arguments: Sequence[str], _: object) -> Iterator[bytes]:
    with _reading:
        yield from import_module(module).work(file, *arguments)
