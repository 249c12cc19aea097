"""Bars are drawn in a terminal, and nowhere else."""

import os
import pty

import pytest

from rag_assistant.cli.progress import progress


def test_a_terminal_shows_how_far_something_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, written_to = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as screen, os.fdopen(written_to, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        with progress("embedding") as tell:
            tell(1, 2)
        drawn = screen.read(65536).decode()
    assert "embedding" in drawn
    assert "50%" in drawn
