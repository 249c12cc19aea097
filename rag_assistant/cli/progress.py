"""How far something is, drawn as a bar in a terminal. Into a pipe or a file goes nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

PARTS_OF_THE_BAR = 1000


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar, and give what is told how much is done, and of how much."""
    with click.progressbar(length=PARTS_OF_THE_BAR, label=label, hidden=not sys.stdout.isatty()) as bar:
        yield lambda done, total: bar.update(PARTS_OF_THE_BAR * done // max(1, total) - bar.pos)
