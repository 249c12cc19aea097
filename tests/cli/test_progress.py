"""Bars are drawn in a terminal, and nowhere else."""

import os
import pty

import pytest

from rag_assistant.cli.commands import progress


def test_a_terminal_shows_how_far_something_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, written_to = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as screen, os.fdopen(written_to, "w") as output:
        monkeypatch.setattr("sys.stderr", output)
        with progress("embedding") as tell:
            tell(1, 2)
        drawn = drawn_to_its_end(screen.fileno())
    assert "embedding" in drawn
    assert "50%" in drawn


def drawn_to_its_end(screen: int) -> str:
    """Read up to the line's end: a terminal hands on what is written to it piece by piece."""
    drawn = b""
    while b"\n" not in drawn:
        drawn += os.read(screen, 65536)
    return drawn.decode()
