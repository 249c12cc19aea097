"""What the other records are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

# What goes to the model and nothing else: a dict in the OpenAI chat format.
Message = dict[str, Any]
# What an id or a position can be at most in every database that we keep them in.
MAX_INT32 = 2**31 - 1


class Unset(Struct, frozen=True):
    """The type of ``UNSET``: "nobody said anything", where ``None`` already means "no limit"."""


UNSET = Unset()


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return numbers that rise as runs of neighbours: [first, last]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
