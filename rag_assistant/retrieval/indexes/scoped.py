"""The best hits of a part of the library, from a search of all of it: a part is often asked for, and seldom indexed."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from rag_assistant.retrieval.hybrid import Hit

# In half of the library, twice as many hits hold those that are wanted; four times as many leave room for chance.
TIMES_AS_MANY = 4
TIMES_MORE = 8


def best_within(
    best: Callable[[int], Sequence[Hit]], limit: int, among: Callable[[Sequence[int]], Set[int]]
) -> list[Hit]:
    """Return the first ``limit`` hits that ``among`` leaves of their ids; ``best`` gives as many as it is asked for."""
    count = TIMES_AS_MANY * limit
    while True:
        hits = best(count)
        within = among([chunk_id for chunk_id, _ in hits])
        found = [hit for hit in hits if hit[0] in within]
        if len(found) >= limit or len(hits) < count:
            return found[:limit]
        count *= TIMES_MORE
