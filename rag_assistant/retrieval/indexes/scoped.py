"""The best hits of a part of the library, from a search of all of it: a part is often asked for, and seldom indexed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rag_assistant.retrieval.hybrid import Hit

if TYPE_CHECKING:
    from rag_assistant.storage.documents.scope import ChunksInScope

# Half as many again as would do if hits were spread evenly.
MARGIN = 1.5
TIMES_MORE = 8


def best_within(best: Callable[[int], Sequence[Hit]], limit: int, within: ChunksInScope, chunks: int) -> list[Hit]:
    """Return the first ``limit`` hits that are ``within``; ``best`` gives so many of all ``chunks`` as it is asked for.

    Other documents may be nearer to the question than those of the scope: then more are asked for.
    """
    count = int(MARGIN * limit * max(1.0, chunks / max(within.size, 1)))
    while True:
        hits = best(count)
        inside = within.among([chunk_id for chunk_id, _ in hits])
        found = [hit for hit in hits if hit[0] in inside]
        if len(found) >= limit or len(hits) < count:
            return found[:limit]
        count *= TIMES_MORE
