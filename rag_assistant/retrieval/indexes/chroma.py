"""Chroma: a vector index in a separate process, which can always be rebuilt from the embeddings in SQL.

It is only trusted with finding candidates.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.chroma_process import ChromaFailed, ChromaProcess, Request
from rag_assistant.retrieval.indexes.exact import as_matrix, nearest

if TYPE_CHECKING:
    from rag_assistant.storage.documents.embeddings import EmbeddingStore
    from rag_assistant.storage.documents.scope import ChunksInScope

log = logging.getLogger(__name__)

BATCH_SIZE = 1000
# Starting it takes CPU time that the first page and the embedding model need first.
START_DELAY_SECONDS = 5.0
POLL_INTERVAL_SECONDS = 2.0
# Between these, vectors that somebody exchanged for others behind our back would not be noticed: their number is right.
COMPARE_INTERVAL_SECONDS = 3600.0
PROBE = 10
# More vectors need more (bench/README.md).
VECTORS_PER_RESULT = 500
# In part of the library, this many times the hits needed with an even distribution are requested, and this many times
# more if too few are in it. It is faster than Chroma's own filter: that takes 34 ms in half of 10,000 chunks, this 8.
MARGIN, TIMES_MORE = 1.5, 4
# Reading a vector from SQL and comparing it takes a quarter of the time of a result from Chroma.
ROWS_PER_RESULT = 4


class ChromaIndex:
    """The embeddings of one embedder in a Chroma collection, kept in sync with SQL by a thread.

    Its process starts with the first vector. While it is unavailable or behind, the exact index is used.
    """

    name = "chroma"

    def __init__(
        self,
        store: EmbeddingStore,
        model: KnownEmbedder,
        folder: Path,
        url: str | None = None,
        headers: dict[str, str] | None = None,
        notice: str | None = None,
    ) -> None:
        # Why this index is used although a better one could be.
        self.notice = notice
        self.problem: str | None = None
        self._store = store
        self._embedder, self._dimension = model.key, model.dimension
        self._chroma = ChromaProcess(folder, url, headers, f"chunks-{_plain(self._embedder)}")
        self._request: Request | None = None
        # The synced version of the store, and the largest id.
        self._in_step_with: tuple[int, int] | None = None
        self._last = 0
        self._closing = threading.Event()
        self._losing = threading.Lock()
        self._started = self._is_needed = self._is_slow = False
        self._compared_at = 0.0

    @property
    def state(self) -> str:
        """``off`` while there is nothing to search, ``ready``, or ``behind`` while it is filled.

        Its process may be ``starting`` or ``slow``, or have ``failed``; a ``damaged`` folder is rebuilt.
        """
        if not self._is_needed:
            return "off"
        if self._in_step_with is not None:
            return "ready"
        if self._chroma.is_damaged:
            return "damaged"
        state = self._chroma.process.state
        return state if state not in ("ready", "off") else "slow" if self._is_slow else "behind"

    def start(self) -> None:
        """Start following SQL, once."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._follow, name="chroma", daemon=True).start()

    def search(
        self, vectors: Sequence[Vectors], limit: int, version: tuple[int, int], within: ChunksInScope | None = None
    ) -> list[list[Hit]]:
        """Return for each vector up to ``limit`` chunk ids with their cosine, nearest first; with ``within``, only of
        those.

        Raises IndexUnavailable while Chroma is unavailable or behind this ``version`` of the store, and for a part of
        the library that is faster to search exactly.
        """
        count = version[0] - version[1]
        n_results = max(limit, count // VECTORS_PER_RESULT)
        if within is None:
            return [hits[:limit] for hits in self._nearest_stored(vectors, n_results, version)]
        part = len(within.ids)
        n_results = int(MARGIN * n_results * max(1.0, count / max(1, part)))
        while part > ROWS_PER_RESULT * n_results:
            inside = [
                list(compress(hits, within.ids.hold([chunk_id for chunk_id, _ in hits])))
                for hits in self._nearest(vectors, n_results, version)
            ]
            if all(len(hits) >= limit for hits in inside):
                return [hits[:limit] for hits in inside]
            n_results *= TIMES_MORE
        raise IndexUnavailable("So small a part is faster to search exactly.")

    def _nearest_stored(self, vectors: Sequence[Vectors], limit: int, version: tuple[int, int]) -> list[list[Hit]]:
        """Return the hits without those that were deleted since the last sync: to compare everything takes seconds."""
        deleted = version[1] - self._in_step_with[1] if self._in_step_with is not None else 0
        some = self._nearest(vectors, limit + min(deleted, TIMES_MORE * limit), version)
        if not deleted:
            return some
        stored = self._store.still_embedded(self._embedder, {chunk_id for hits in some for chunk_id, _ in hits})
        some = [[hit for hit in hits if hit[0] in stored] for hits in some]
        if min(map(len, some)) < min(limit, version[0] - version[1]):
            raise IndexUnavailable("Most of the nearest vectors were deleted.")
        return some

    def _nearest(self, vectors: Sequence[Vectors], limit: int, version: tuple[int, int]) -> list[list[Hit]]:
        """Return Chroma's hits in one query, and what was added since the last sync, nearest first."""
        request, in_step_with, last = self._request, self._in_step_with, self._last
        if request is None or in_step_with is None:
            raise IndexUnavailable("Chroma is not in step with the database.")
        added = version[0] - in_step_with[0]
        if added > BATCH_SIZE:
            raise IndexUnavailable("Chroma lacks too many vectors.")
        query = partial(request, "query", query_embeddings=list(vectors), n_results=limit, include=["distances"])
        try:
            try:
                result = query()
            except ChromaFailed:  # "Error finding id": it had found a vector that was deleted at that moment.
                result = query()
            if min(map(len, result["ids"])) < min(limit, in_step_with[0] - version[1]):
                raise IndexUnavailable("Chroma lacks vectors.")
        except Exception as error:
            self._lose(error, request)
            raise IndexUnavailable("Chroma does not answer.") from error
        newer = self._store.vectors_after(self._embedder, last, added) if added > 0 else []
        ids, rows = as_matrix(newer, self._dimension)
        return [
            _joined(chunk_ids, distances, nearest(ids, rows @ vector, limit))
            for vector, chunk_ids, distances in zip(vectors, result["ids"], result["distances"], strict=True)
        ]

    def close(self) -> None:
        """Stop following, and stop our own process."""
        self._closing.set()
        self._chroma.process.close()

    def _follow(self) -> None:
        self._closing.wait(START_DELAY_SECONDS)
        while not self._closing.is_set():
            try:
                self._catch_up()
            except Exception as error:  # noqa: BLE001 - whatever Chroma does, search goes on
                self._lose(error, self._request)
            self._closing.wait(POLL_INTERVAL_SECONDS)

    def _catch_up(self) -> None:
        """Add what is missing; compare everything if that isn't enough, as after a deletion, or by somebody else."""
        version = self._store.version(self._embedder)
        self._is_needed = self._is_needed or version[0] > version[1]
        if not self._is_needed:
            return
        self._chroma.process.start()
        self._request = request = self._request or self._chroma.process.service
        if request is None:
            raise IndexUnavailable(self._chroma.process.problem or "The Chroma process is not ready yet.")
        is_due = time.monotonic() > self._compared_at + COMPARE_INTERVAL_SECONDS
        has_lost = self._in_step_with is None or self._in_step_with[1] != version[1]
        if is_due or has_lost or not self._is_whole_with_new(version, request):
            self._mend(request)
        if not self._closing.is_set():
            self._in_step_with, self.problem = version, None
            self._is_slow = self._chroma.is_damaged = False

    def _is_whole_with_new(self, version: tuple[int, int], request: Request) -> bool:
        """Add what has a larger id. Return whether that is all: others may have a smaller one, or be a stranger's."""
        while batch := self._store.vectors_after(self._embedder, self._last, BATCH_SIZE):
            self._add(request, batch)
            self._last = batch[-1][0]
        added, deleted = self._store.version(self._embedder)
        return bool(version[0] - version[1] <= request("count") <= added - deleted)

    def _mend(self, request: Request) -> None:
        """Add what is missing and delete what is superfluous."""
        here = set(self._store.embedded_ids(self._embedder))
        there = set(map(int, request("get", include=[])["ids"]))
        missing, extra = here - there, there - here
        left, gone = sorted(missing), [str(chunk_id) for chunk_id in extra]
        while left and (batch := self._store.vectors_after(self._embedder, left[0] - 1, BATCH_SIZE)):
            self._add(request, [one for one in batch if one[0] in missing])
            left = [chunk_id for chunk_id in left if chunk_id > batch[-1][0]]
        for start in range(0, len(gone), BATCH_SIZE):
            request("delete", ids=gone[start : start + BATCH_SIZE])
        self._last, self._compared_at = max(here, default=0), time.monotonic()
        some = request("query", query_embeddings=[[1.0] * self._dimension], n_results=PROBE, include=[])["ids"][0]
        if len(some) < min(PROBE, request("count")):
            raise ChromaFailed("Chroma does not find the vectors that it has.")

    def _add(self, request: Request, batch: list[tuple[int, bytes]]) -> None:
        if self._closing.is_set():
            raise IndexUnavailable("The index is being closed.")
        ids, rows = as_matrix(batch, self._dimension)
        if len(ids):
            request("add", ids=[str(chunk_id) for chunk_id in ids.tolist()], embeddings=rows)

    def _lose(self, error: Exception, request: Request | None) -> None:
        """Record that Chroma is unavailable, once."""
        with self._losing:
            if request is not self._request:  # Another thread has noticed it already.
                return
            if self.problem is None and request is not None:
                log.warning("Chroma is away; the exact index answers. %s: %s", type(error).__name__, error)
            self.problem = str(error)
            self._request = self._in_step_with = None
            self._is_slow = isinstance(error, TimeoutError)
        if isinstance(error, ChromaFailed):
            self._chroma.note(error)


def _joined(ids: Sequence[str], distances: Sequence[float], newer: Sequence[Hit]) -> list[Hit]:
    hits = {int(chunk_id): 1.0 - float(distance) for chunk_id, distance in zip(ids, distances, strict=True)}
    return sorted((hits | dict(newer)).items(), key=lambda hit: -hit[1]) if newer else list(hits.items())


def _plain(key: str) -> str:
    """Return an embedder's key as a valid Chroma name; a hash makes it unique."""
    plain = re.sub("[^A-Za-z0-9._-]", "-", key)
    return key if plain == key else f"{plain[:100]}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
