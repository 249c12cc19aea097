"""Keyword search in memory, for libraries that are large enough: it follows the words that SQLite holds.

While it is behind, FTS5 answers: nobody waits for it, and nothing of it is kept on the disk.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from msgspec import Struct

from rag_assistant.retrieval.hybrid import Hit

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.tantivy_words import TantivyWords
    from rag_assistant.storage.documents.keywords import KeywordIndex, KeywordState
    from rag_assistant.storage.documents.scope import ChunksInScope
    from rag_assistant.storage.id_ranges import IdRanges

log = logging.getLogger(__name__)

# Fewer are found by FTS5 in a millisecond or two, without the 20 MB that tantivy takes (docs/benchmarks.md).
FROM_CHUNKS = 500
ROWS_AT_ONCE = 200
RETRY_INTERVAL_SECONDS = 10.0
# Of so many chunks each is asked for; of more, the best of all chunks are compared with them.
MAX_FEW = 2_000
# Half as many again as would do if hits were spread evenly.
MARGIN = 1.5
TIMES_MORE = 8


class _InStep(Struct, frozen=True):
    """An index, and the number of the change up to which it has everything."""

    change: int
    words: TantivyWords


class KeywordsInMemory:
    """The words of all chunks, whoever may read them."""

    def __init__(self, store: KeywordIndex, from_chunks: int = FROM_CHUNKS) -> None:
        self._store = store
        self._from_chunks = from_chunks
        self._held: _InStep | None = None
        self._behind = threading.Event()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def best(
        self, words: Sequence[str], limit: int, state: KeywordState, within: ChunksInScope | None = None
    ) -> list[Hit] | None:
        """Return up to ``limit`` chunk ids with their score (higher is better) that hold any of ``words``.

        With ``within``, only of those. ``None`` while it is not in step with a ``state`` of the library, where this is
        small, and on PostgreSQL.
        """
        if not words:
            return []
        held = self._in_step(state)
        if held is None:
            return None
        if within is None:
            return held.words.best(words, limit)
        if len(within.ids) <= MAX_FEW:
            return held.words.best(words, limit, within.ids.all().tolist())
        return _best_within(held.words, words, limit, within.ids)

    def warm_up(self) -> None:
        """Begin to read the words, if there are enough of them."""
        self._in_step(self._store.state())

    def close(self) -> None:
        """Stop following."""
        self._closing.set()
        self._behind.set()
        if self._thread is not None:
            self._thread.join()

    def _in_step(self, state: KeywordState) -> _InStep | None:
        if state.change is None or state.last_chunk < self._from_chunks:
            return None
        held = self._held
        if held is not None and held.change == state.change:
            return held
        self._behind.set()
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._follow, name="keywords", daemon=True)
                self._thread.start()
        return None

    def _follow(self) -> None:
        while self._behind.wait() and not self._closing.is_set():
            self._behind.clear()
            try:
                self._catch_up()
            except Exception as error:  # noqa: BLE001 - whatever happens here, FTS5 goes on
                log.warning("SQLite alone searches for keywords. %s: %s", type(error).__name__, error)
                self._held = None
                self._closing.wait(RETRY_INTERVAL_SECONDS)

    def _catch_up(self) -> None:
        from rag_assistant.retrieval.indexes.tantivy_words import TantivyWords

        state, held = self._store.state(), self._held
        changes = self._store.changes_after(held.change) if held is not None else None
        if held is not None and changes is not None:
            ranges = apart([(first, last) for _, first, last in changes])
            held.words.change(ranges, self._words(ranges))
            self._held = _InStep(max([held.change, *(n for n, _, _ in changes)]), held.words)
            return
        # What is changed meanwhile comes with the next change, once more.
        words = TantivyWords()
        words.change([], self._words([(0, state.last_chunk)]))
        if not self._closing.is_set() and state.change is not None:
            self._held = _InStep(state.change, words)

    def _words(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
        """Yield the chunks of some ranges of ids with their words."""
        for first, last in ranges:
            while first <= last and not self._closing.is_set():
                rows = self._store.words_between(first, last, ROWS_AT_ONCE)
                yield from rows
                if len(rows) < ROWS_AT_ONCE:
                    break
                first = rows[-1][0] + 1


def _best_within(held: TantivyWords, words: Sequence[str], limit: int, ids: IdRanges) -> list[Hit]:
    """Return the first ``limit`` hits that are among some ids, from those of all chunks.

    Others may hold the words more often than these: then more are asked for.
    """
    count = int(MARGIN * limit * max(1.0, len(held) / len(ids)))
    while True:
        hits = held.best(words, count)
        found = list(compress(hits, ids.hold([chunk_id for chunk_id, _ in hits])))
        if len(found) >= limit or len(hits) < count:
            return found[:limit]
        count *= TIMES_MORE


def apart(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same numbers in ranges that do not overlap, in their order; both ends are included."""
    kept: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if kept and first <= kept[-1][1]:
            kept[-1] = kept[-1][0], max(last, kept[-1][1])
        else:
            kept.append((first, last))
    return kept
