"""Many ids as few ranges: the chunks of a document are kept at once, so that their ids follow one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class IdRanges:
    """Ids, or places among ids, in ranges that do not overlap, the smallest first; the ends are not included."""

    def __init__(self, starts: Ids, ends: Ids) -> None:
        self._starts, self._ends = starts, ends

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> IdRanges:
        """Return some ranges that come in any order, each from its start to its end."""
        return cls(*np.array(sorted(ranges), np.int64).reshape(-1, 2).T)

    def __len__(self) -> int:
        return int(np.sum(self._ends - self._starts))

    def all(self) -> Ids:
        """Return every id, the smallest first."""
        lengths = self._ends - self._starts
        before = np.cumsum(lengths) - lengths
        return np.repeat(self._starts - before, lengths) + np.arange(len(self))

    def hold(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        numbers = np.array(ids, np.int64)
        begun, ended = (np.searchsorted(some, numbers, side="right") for some in (self._starts, self._ends))
        return begun > ended

    def joined(self, min_gap: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges, each from its start to its end; those with less than ``min_gap`` between them as one."""
        apart = np.flatnonzero(self._starts[1:] - self._ends[:-1] >= min_gap)
        if len(self):
            yield from zip(self._starts[[0, *(apart + 1)]].tolist(), self._ends[[*apart, -1]].tolist(), strict=True)


def ranges_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of some ids, the smallest first, each from its start to its end."""
    numbers = np.array(ids, np.int64)
    return list(IdRanges(numbers, numbers + 1).joined(1))
