"""Chroma: an index of the embeddings in SQL, in a process of its own, that can always be built anew.

It is never trusted with more than finding candidates. One process of ours runs ``chroma run`` on loopback, since two
processes on one of its folders destroy it; or CHROMA_URL names a server. chromadb is imported where it is used.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.rows_in_memory import VectorStore
from rag_assistant.runtime.supervised_process import Process, SupervisedProcess, plain_environment

if TYPE_CHECKING:
    from rag_assistant.storage.documents.scope import ChunksInScope

log = logging.getLogger(__name__)

ADDED_AT_ONCE = 1000
START_TIMEOUT_SECONDS = 30.0
POLL_INTERVAL_SECONDS = 2.0
FAILURES_UNTIL_BROKEN = 3
# How many vectors a search looks at before it answers. Of the 100 nearest of 100,000, Chroma's own 100 finds .83, this
# .96; of more vectors it takes more (docs/benchmarks.md).
LOOKED_AT = 300
VECTORS_FOR_EACH_LOOKED_AT = 500


class ChromaProcess:
    """Runs ``chroma run`` on a free port of loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._url = ""
        self.process: SupervisedProcess[str] = SupervisedProcess("The Chroma process", self._launch, self._ready)

    def start_anew(self) -> None:
        """Put the folder aside and end the process; it is started again with an empty one."""
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
    """The embeddings of one embedder in a collection of Chroma, kept in step with SQL by a thread of its own.

    While it is away or behind, the index in memory answers, and always where a part of the library is searched.
    """

    name = "chroma"

    def __init__(
        self,
        store: VectorStore,
        embedder: str,
        url: str | None,
        folder: Path,
        from_chunks: int = 0,
        notice: str | None = None,
    ) -> None:
        self.from_chunks = from_chunks
        # Why this index is used where there could be a better one.
        self.notice = notice
        self._store = store
        self._embedder = embedder
        self._url = url
        self._process = None if url else ChromaProcess(folder)
        self._collection: Any = None
        self._in_step_with: tuple[int, int] | None = None
        self._closing = threading.Event()
        self._losing = threading.Lock()
        self._started = False
        self._failures = 0
        self._begun_anew = False
        self.problem: str | None = None

    @property
    def state(self) -> str:
        """``off``, ``ready``, or ``behind`` while it is started, filled or away."""
        if not self._started:
            return "off"
        return "ready" if self._in_step_with is not None else "behind"

    @property
    def pid(self) -> int | None:
        """The number of Chroma's process, for those who measure or test it."""
        return self._process.process.pid if self._process else None

    def start(self) -> None:
        """Begin to follow SQL, once."""
        if self._started:
            return
        self._started = True
        if self._process:
            self._process.process.start()
        threading.Thread(target=self._follow, name="chroma", daemon=True).start()

    def search(
        self, vector: Vectors, limit: int, version: tuple[int, int], within: ChunksInScope | None = None
    ) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their cosine, the nearest first.

        Raises IndexUnavailable while Chroma is away, or not in step with this ``version`` of the store, and for a part
        of the library.
        """
        if within is not None:
            raise IndexUnavailable("Chroma is asked for the whole library only.")
        collection = self._collection
        if collection is None or self._in_step_with != version:
            raise IndexUnavailable("Chroma is not in step with the database.")
        try:
            asked = max(limit, (version[0] - version[1]) // VECTORS_FOR_EACH_LOOKED_AT)
            found = collection.query(query_embeddings=[vector], n_results=asked, include=["distances"])
        except Exception as error:
            self._lose(error, collection)
            raise IndexUnavailable("Chroma does not answer.") from error
        pairs = zip(found["ids"][0][:limit], found["distances"][0][:limit], strict=True)
        return [(int(chunk_id), 1.0 - float(distance)) for chunk_id, distance in pairs]

    def differences(self) -> tuple[int, int]:
        """Return how many vectors Chroma lacks, and how many it has that SQL does not. Raises IndexUnavailable."""
        known, held = self._known_ids(), set(self._store.embedded_ids(self._embedder))
        return len(held - known), len(known - held)

    def mend(self) -> None:
        """Add what is missing and drop what is too much. Raises IndexUnavailable."""
        try:
            self._compare()
        except Exception as error:
            raise IndexUnavailable(f"Chroma does not answer: {error}") from error

    def close(self) -> None:
        """Stop following, and end the process if it is ours."""
        self._closing.set()
        if self._process:
            self._process.process.close()

    def _follow(self) -> None:
        while not self._closing.wait(POLL_INTERVAL_SECONDS if self._in_step_with else 0.2):
            try:
                self._come_in_step()
            except Exception as error:  # noqa: BLE001 - whatever Chroma does, search goes on
                self._lose(error, self._collection)
                self._closing.wait(POLL_INTERVAL_SECONDS)

    def _come_in_step(self) -> None:
        """Add what is missing; compare everything where that is not enough, such as after a deletion."""
        version = self._store.version(self._embedder)
        if version == self._in_step_with:
            return
        if self._collection is None:
            self._collection = self._open()
        added, deleted = version
        if self._in_step_with is not None and self._in_step_with[1] == deleted:
            self._add_after(int((self._collection.metadata or {}).get("last") or 0), known=set())
        else:
            self._compare()
        if self._collection.count() < added - deleted:  # Some that came later have smaller ids.
            self._compare()
        if not self._closing.is_set():
            self._in_step_with, self.problem, self._failures, self._begun_anew = version, None, 0, False

    def _compare(self) -> None:
        """Add everything that is missing, and drop everything that SQL no longer holds."""
        known = set(map(int, self._collection.get(include=[])["ids"]))
        seen = self._add_after(0, known)
        if not self._closing.is_set():
            self._drop(sorted(known - seen))

    def _known_ids(self) -> set[int]:
        try:
            if self._process:
                self._process.process.start()
            self._collection = self._collection or self._open()
            return set(map(int, self._collection.get(include=[])["ids"]))
        except IndexUnavailable:
            raise
        except Exception as error:
            raise IndexUnavailable(f"Chroma does not answer: {error}") from error

    def _add_after(self, last: int, known: set[int]) -> set[int]:
        """Add the embeddings of chunks above ``last`` that are not ``known``; return the ids of all of them in SQL."""
        seen: set[int] = set()
        while not self._closing.is_set() and (batch := self._store.vectors_after(self._embedder, last, ADDED_AT_ONCE)):
            last = batch[-1][0]
            seen.update(chunk_id for chunk_id, _ in batch)
            self._add([pair for pair in batch if pair[0] not in known])
        self._collection.modify(metadata={"last": last})
        return seen

    def _drop(self, gone: list[int]) -> None:
        for start in range(0, len(gone), ADDED_AT_ONCE):
            self._collection.delete(ids=[str(chunk_id) for chunk_id in gone[start : start + ADDED_AT_ONCE]])

    def _add(self, batch: list[tuple[int, bytes]]) -> None:
        if batch:
            vectors = np.frombuffer(b"".join(vector for _, vector in batch), np.float32).reshape(len(batch), -1)
            self._collection.add(ids=[str(chunk_id) for chunk_id, _ in batch], embeddings=vectors)

    def _open(self) -> Any:
        """Return the collection. It embeds nothing: vectors come from SQL only."""
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
        collection = client.get_or_create_collection(
            f"chunks-{_plain(self._embedder)}",
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine", "ef_search": LOOKED_AT}},
        )
        if collection.configuration_json["hnsw"]["ef_search"] != LOOKED_AT:  # An older version made it.
            collection.modify(configuration={"hnsw": {"ef_search": LOOKED_AT}})
        return collection

    def _lose(self, error: Exception, collection: Any) -> None:
        """Take note that Chroma is away. If it stays away, take its folder from it: it is built anew."""
        with self._losing:
            if collection is self._collection:  # Else another thread has noticed it already.
                self._note_loss(error)

    def _note_loss(self, error: Exception) -> None:
        if self.problem is None:
            log.warning("Chroma is away; vectors in memory answer. %s: %s", type(error).__name__, error)
        self.problem = str(error)
        self._collection = self._in_step_with = None
        self._failures += 1
        # A folder that is new cannot be what keeps it away: then it only needs its time to start.
        if self._process and self._failures >= FAILURES_UNTIL_BROKEN and not self._begun_anew:
            log.warning("Chroma's folder seems broken. It is put aside and built anew from the database.")
            self._process.start_anew()
            self._failures, self._begun_anew = 0, True


def _plain(key: str) -> str:
    """Return an embedder's key in the letters that Chroma takes; a hash tells apart what would become the same."""
    plain = re.sub("[^A-Za-z0-9._-]", "-", key)
    return key if plain == key else f"{plain[:100]}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=1) as response:  # noqa: S310 - our own loopback
            return bool(response.status == 200)
    except OSError:
        return False
