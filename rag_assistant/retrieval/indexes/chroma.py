"""Chroma: a vector index in a separate process, which can always be rebuilt from the embeddings in SQL.

It is only trusted with finding candidates. One of our processes runs ``chroma run`` on loopback, since two processes on
one folder destroy it; or CHROMA_URL names a server. chromadb is imported where it is used.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.exact import as_matrix, nearest
from rag_assistant.runtime.supervised_process import Process, SupervisedProcess, plain_environment

if TYPE_CHECKING:
    from rag_assistant.storage.documents.embeddings import EmbeddingStore
    from rag_assistant.storage.documents.scope import ChunksInScope

log = logging.getLogger(__name__)

BATCH_SIZE = 1000
START_TIMEOUT_SECONDS = 30.0
# Starting it takes CPU time that the first page and the embedding model need first.
START_DELAY_SECONDS = 5.0
POLL_INTERVAL_SECONDS = 2.0
FAILURES_UNTIL_BROKEN = 3
# How many vectors a search examines. Of the 100 nearest of 100,000, Chroma's default of 100 finds .83, this .97; more
# vectors need more (bench/README.md).
EF_SEARCH = 500
VECTORS_PER_RESULT = 500
# In part of the library, this many times the hits needed with an even distribution are requested, and this many times
# more if too few are in it. It is faster than Chroma's own filter: that takes 34 ms in half of 10,000 chunks, this 8.
MARGIN, TIMES_MORE = 1.5, 4
# Reading a vector from SQL and comparing it takes a quarter of the time of a result from Chroma.
ROWS_PER_RESULT = 4


class ChromaProcess:
    """Runs ``chroma run`` on a free loopback port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._url = ""
        self.process: SupervisedProcess[str] = SupervisedProcess("The Chroma process", self._launch, self._ready)

    def reset(self) -> None:
        """Move the folder away and kill the process; it is restarted with an empty one."""
        aside = self._folder.with_name(self._folder.name + "-broken")
        shutil.rmtree(aside, ignore_errors=True)
        if self._folder.exists():
            self._folder.rename(aside)
        self.process.kill()

    def _launch(self) -> Process:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._folder.mkdir(parents=True, exist_ok=True)
        chroma = str(Path(sys.executable).with_name("chroma"))
        options = ["--path", str(self._folder), "--host", "127.0.0.1", "--port", str(port)]
        return subprocess.Popen(
            [sys.executable, "-m", "rag_assistant.runtime.supervised_process", chroma, "run", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=plain_environment(),
            text=True,
        )

    def _ready(self, process: Process) -> str | None:
        end = time.monotonic() + START_TIMEOUT_SECONDS
        while process.poll() is None and time.monotonic() < end:
            if _answers(self._url):
                return self._url
            time.sleep(0.1)
        return None


class ChromaIndex:
    """The embeddings of one embedder in a Chroma collection, kept in sync with SQL by a thread.

    Its process starts with the first vector. While it is unavailable or behind, the exact index is used.
    """

    name = "chroma"

    def __init__(
        self, store: EmbeddingStore, model: KnownEmbedder, url: str | None, folder: Path, notice: str | None = None
    ) -> None:
        # Why this index is used although a better one could be.
        self.notice = notice
        self.problem: str | None = None
        self._store = store
        self._embedder, self._dimension = model.key, model.dimension
        self._url = url
        self._process = None if url else ChromaProcess(folder)
        self._collection: Any = None
        # The synced version of the store, and the largest id.
        self._in_step_with: tuple[int, int] | None = None
        self._last = 0
        self._closing = threading.Event()
        self._losing = threading.Lock()
        self._started = self._is_needed = False
        self._failures = 0
        self._is_reset = False

    @property
    def state(self) -> str:
        """``off`` while there is nothing to search, ``ready``, or ``behind`` while it is starting, syncing or
        unavailable.
        """
        if not self._is_needed:
            return "off"
        return "ready" if self._in_step_with is not None else "behind"

    @property
    def pid(self) -> int | None:
        """The id of Chroma's process, for monitoring and tests."""
        return self._process.process.pid if self._process else None

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
            return [hits[:limit] for hits in self._nearest(vectors, n_results, version)]
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

    def _nearest(self, vectors: Sequence[Vectors], limit: int, version: tuple[int, int]) -> list[list[Hit]]:
        """Return Chroma's hits in one query, and what was added since the last sync, nearest first."""
        collection, in_step_with, last = self._collection, self._in_step_with, self._last
        if collection is None or in_step_with is None or in_step_with[1] != version[1]:
            raise IndexUnavailable("Chroma is not in step with the database.")
        added = version[0] - in_step_with[0]
        if added > BATCH_SIZE:
            raise IndexUnavailable("Chroma lacks too many vectors.")
        try:
            result = collection.query(query_embeddings=list(vectors), n_results=limit, include=["distances"])
        except Exception as error:
            self._lose(error, collection)
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
        if self._process:
            self._process.process.close()

    def _follow(self) -> None:
        self._closing.wait(START_DELAY_SECONDS)
        while not self._closing.is_set():
            try:
                self._catch_up()
            except Exception as error:  # noqa: BLE001 - whatever Chroma does, search goes on
                self._lose(error, self._collection)
            self._closing.wait(POLL_INTERVAL_SECONDS)

    def _catch_up(self) -> None:
        """Add what is missing; compare everything if that isn't enough, such as after a deletion."""
        version = self._store.version(self._embedder)
        self._is_needed = self._is_needed or version[0] > version[1]
        if version == self._in_step_with or not self._is_needed:
            return
        self._connect()
        if self._in_step_with is not None and self._in_step_with[1] == version[1]:
            while batch := self._store.vectors_after(self._embedder, self._last, BATCH_SIZE):
                self._add(batch)
                self._last = batch[-1][0]
            if self._collection.count() < version[0] - version[1]:  # Later ones may have smaller ids.
                self._mend()
        else:
            self._mend()
        if not self._closing.is_set():
            self._in_step_with, self.problem, self._failures, self._is_reset = version, None, 0, False

    def _mend(self) -> None:
        """Add what is missing and delete what is superfluous."""
        here = set(self._store.embedded_ids(self._embedder))
        there = set(map(int, self._collection.get(include=[])["ids"]))
        missing, extra = here - there, there - here
        left, gone = sorted(missing), [str(chunk_id) for chunk_id in extra]
        while left and (batch := self._store.vectors_after(self._embedder, left[0] - 1, BATCH_SIZE)):
            self._add([one for one in batch if one[0] in missing])
            left = [chunk_id for chunk_id in left if chunk_id > batch[-1][0]]
        for start in range(0, len(gone), BATCH_SIZE):
            self._collection.delete(ids=gone[start : start + BATCH_SIZE])
        self._last = max(here, default=0)

    def _add(self, batch: list[tuple[int, bytes]]) -> None:
        if self._closing.is_set():
            raise IndexUnavailable("The index is being closed.")
        ids, rows = as_matrix(batch, self._dimension)
        if len(ids):
            self._collection.add(ids=[str(chunk_id) for chunk_id in ids.tolist()], embeddings=rows)

    def _connect(self) -> None:
        if self._process:
            self._process.process.start()
        self._collection = self._collection or self._open()

    def _open(self) -> Any:
        """Return the collection. It embeds nothing: vectors only come from SQL."""
        url = self._url or (self._process.process.wait(START_TIMEOUT_SECONDS) if self._process else None)
        if url is None:
            raise IndexUnavailable("The Chroma process is not running.")
        import chromadb
        from chromadb.config import Settings

        host, _, port = url.split("//", 1)[1].rstrip("/").partition(":")
        secure = url.startswith("https")
        client = chromadb.HttpClient(
            host=host,
            port=int(port or (443 if secure else 80)),
            ssl=secure,
            settings=Settings(anonymized_telemetry=False),
        )
        return client.get_or_create_collection(
            f"chunks-{_plain(self._embedder)}",
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}},
        )

    def _lose(self, error: Exception, collection: Any) -> None:
        """Record that Chroma is unavailable. If that persists, discard its folder and rebuild it."""
        with self._losing:
            if collection is self._collection:  # Otherwise another thread has noticed it already.
                self._note_loss(error)

    def _note_loss(self, error: Exception) -> None:
        if self.problem is None:
            log.warning("Chroma is away; the exact index answers. %s: %s", type(error).__name__, error)
        self.problem = str(error)
        self._collection = self._in_step_with = None
        self._failures += 1
        # A new folder can't be the cause: then it only needs time to start.
        if self._process and self._failures >= FAILURES_UNTIL_BROKEN and not self._is_reset:
            log.warning("Chroma's folder seems broken. It is put aside and rebuilt from the database.")
            self._process.reset()
            self._failures, self._is_reset = 0, True


def _joined(ids: Sequence[str], distances: Sequence[float], newer: Sequence[Hit]) -> list[Hit]:
    hits = {int(chunk_id): 1.0 - float(distance) for chunk_id, distance in zip(ids, distances, strict=True)}
    return sorted((hits | dict(newer)).items(), key=lambda hit: -hit[1]) if newer else list(hits.items())


def _plain(key: str) -> str:
    """Return an embedder's key as a valid Chroma name; a hash makes it unique."""
    plain = re.sub("[^A-Za-z0-9._-]", "-", key)
    return key if plain == key else f"{plain[:100]}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=1) as response:  # noqa: S310 - our own loopback
            return bool(response.status == 200)
    except OSError:
        return False
