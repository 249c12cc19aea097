"""Keyword search: tantivy in memory over the words stored in SQLite; PostgreSQL searches them itself.

The index is never on disk, where it would contain words of deleted documents.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.languages import COMPOUNDING

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.tantivy_words import Match, TantivyWords
    from rag_assistant.storage.documents.chunks import KeywordIndex, KeywordState
    from rag_assistant.storage.documents.scope import ChunksInScope, IdRanges

log = logging.getLogger(__name__)

# A search itself reads this many chunks, in 0.3 s of CPU; more are read in the background.
READ_BY_SEARCHES = 5_000
ROWS_AT_ONCE = 200
# Up to this many chunks are queried individually; of more, the best of all chunks are filtered.
MAX_FEW = 2_000
# Half as many again as needed with an even distribution.
MARGIN = 1.5
TIMES_MORE = 8


class KeywordSearch:
    """Finds chunks by words, in memory those of all chunks, whoever may read them."""

    def __init__(self, store: KeywordIndex) -> None:
        self.store = store
        self._held: TantivyWords | None = None
        # The number of the last change it includes.
        self._change = -1
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self._closing = threading.Event()

    def search(
        self, words: Sequence[str], limit: int, within: ChunksInScope | None = None, state: KeywordState | None = None
    ) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their score (higher is better) that contain any of ``words``.

        With ``within``, only of those. Nothing while the words of a large library are read for the first time.
        ``state`` is the index state, if the caller has read it already.
        """
        state = state or self.store.state()
        if not words or not state.languages:
            return []
        if state.change is None:
            return self.store.search(words, limit, within)
        held = self._in_step(state.change)
        how: Match = "parts" if COMPOUNDING.intersection(state.languages) else "alike"
        return [] if held is None else _best(held, words, limit, within, how)

    def unknown(
        self, words: Sequence[str], within: ChunksInScope | None = None, state: KeywordState | None = None
    ) -> set[str]:
        """Return which of the words no chunk contains; none while that is unknown."""
        state = state or self.store.state()
        if not state.languages:
            return set(words)
        if state.change is None:
            return self.store.unknown(words, within)
        held = self._in_step(state.change)
        return set() if held is None else {word for word in words if not _best(held, [word], 1, within, "exact")}

    def is_loading(self, state: KeywordState | None = None) -> bool:
        """Return whether the words of a large library have yet to be read for the first time."""
        if self._held is not None:
            return False
        state = state or self.store.state()
        return state.change is not None and state.last_chunk >= READ_BY_SEARCHES

    def warm_up(self) -> None:
        """Start reading the words."""
        change = self.store.state().change
        if change is not None:
            self._in_step(change)

    def load(self) -> None:
        """Read all words."""
        self.warm_up()
        if self._reader is not None:
            self._reader.join()

    def close(self) -> None:
        """Stop reading."""
        self._closing.set()
        if self._reader is not None:
            self._reader.join()

    @property
    def _is_reading(self) -> bool:
        return self._reader is not None and self._reader.is_alive()

    def _in_step(self, change: int) -> TantivyWords | None:
        """Return the index, updated unless it is far behind; ``None`` before the first reading."""
        if self._change >= change or self._is_reading:
            return self._held
        with self._lock:
            if self._change < change and not self._is_reading and not self._closing.is_set():
                last_change, ranges = self._missing()
                if sum(last - first + 1 for first, last in ranges) <= READ_BY_SEARCHES:
                    self._read(last_change, ranges)
                else:
                    self._reader = threading.Thread(
                        target=self._read_behind, args=(last_change, ranges), name="keywords", daemon=True
                    )
                    self._reader.start()
        return self._held

    def _missing(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of the last change, and the chunks changed since the last reading."""
        state = self.store.state()
        changes = self.store.changes_after(self._change) if self._held is not None else None
        if changes is None:
            return state.change or 0, [(0, state.last_chunk)]
        return max([self._change, *(n for n, _, _ in changes)]), sorted({(first, last) for _, first, last in changes})

    def _read_behind(self, change: int, ranges: Sequence[tuple[int, int]]) -> None:
        try:
            self._read(change, ranges)
        except Exception as error:  # noqa: BLE001 - whatever happens here, vectors go on
            log.warning("The words of documents could not be read. %s: %s", type(error).__name__, error)

    def _read(self, change: int, ranges: Sequence[tuple[int, int]]) -> None:
        """Read some chunks. Concurrent changes are read again with the next change."""
        from rag_assistant.retrieval.indexes.tantivy_words import TantivyWords

        held = self._held or TantivyWords()
        held.change((first, last, self._words(first, last)) for first, last in ranges)
        if not self._closing.is_set():
            self._held, self._change = held, change

    def _words(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        while first <= last and not self._closing.is_set():
            rows = self.store.words_between(first, last, ROWS_AT_ONCE)
            yield from rows
            if len(rows) < ROWS_AT_ONCE:
                return
            first = rows[-1][0] + 1


def _best(held: TantivyWords, words: Sequence[str], limit: int, within: ChunksInScope | None, how: Match) -> list[Hit]:
    if within is None:
        return held.best(words, limit, how=how)
    if len(within.ids) <= MAX_FEW:
        return held.best(words, limit, within.ids.all().tolist(), how)
    return _best_within(held, words, limit, within.ids, how)


def _best_within(held: TantivyWords, words: Sequence[str], limit: int, ids: IdRanges, how: Match) -> list[Hit]:
    """Return the first ``limit`` hits among some ids, requesting more hits of all while others rank higher."""
    count = int(MARGIN * limit * max(1.0, len(held) / len(ids)))
    while True:
        hits = held.best(words, count, how=how)
        within = list(compress(hits, ids.hold([chunk_id for chunk_id, _ in hits])))
        if len(within) >= limit or len(hits) < count:
            return within[:limit]
        count *= TIMES_MORE
