"""Vector search: in Chroma or pgvector; exactly, with NumPy, while these are away and where little is searched."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import EmbedderFailed, IndexUnavailable
from rag_assistant.retrieval.embeddings.familiarity import Familiarity
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.embeddings.question_cache import QuestionVectors
from rag_assistant.retrieval.embeddings.registry import Embedder, Embedders
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.exact import ExactIndex, VectorStore

if TYPE_CHECKING:
    from rag_assistant.storage.documents.scope import ChunksInScope

log = logging.getLogger(__name__)

COOLDOWN_SECONDS = 10.0


class ApproximateIndex(Protocol):
    """Chroma or pgvector: an index of the vectors of one embedding model, which is faster than looking at all."""

    name: str

    @property
    def state(self) -> str:
        """How it is, as /readyz shows it."""

    @property
    def notice(self) -> str | None:
        """A sentence for whoever looks after the server, if there is something to say."""

    def start(self) -> None:
        """Begin to follow SQL, once."""

    def search(
        self, vector: Vectors, limit: int, version: tuple[int, int], within: ChunksInScope | None = None
    ) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their cosine. Raises IndexUnavailable where it cannot tell."""

    def close(self) -> None:
        """Stop following."""


class VectorSpace:
    """The vectors of one embedding model, and their index. Whatever that does, there is an answer."""

    def __init__(self, store: VectorStore, known: KnownEmbedder, index: ApproximateIndex) -> None:
        self.key = known.key
        self.index = index
        self.question_vectors = QuestionVectors()
        # After a failure the model is left alone for a while: each question would wait for it again.
        self.rests_until = 0.0
        self._exact = ExactIndex(store, known.key, known.dimension)

    def search(
        self, vector: Vectors, limit: int, version: tuple[int, int], within: ChunksInScope | None = None
    ) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their cosine, the nearest first; with ``within``, only of those."""
        try:
            hits = self.index.search(vector, limit, version, within)
        except IndexUnavailable as error:
            log.debug("The exact index answers: %s", error)
            return self._exact.search(vector, limit, version, within)
        self._exact.release()
        return hits


class ServingVectors:
    """The vectors as they are at one moment: what embeds a question, and where it is looked for."""

    def __init__(self, known: KnownEmbedder, embedder: Embedder, space: VectorSpace) -> None:
        self._known = known
        self._embedder = embedder
        self._space = space

    @property
    def empty(self) -> bool:
        """Whether there are none."""
        return self._known.version[0] == self._known.version[1]

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._known.dimension

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how near each of some texts is to a question, 0 to 1. Raises EmbedderFailed."""
        (vector,) = self.of_questions([question])
        return [self.similarity(vector, row) for row in self._embedder.embed(texts)]

    def similarity(self, one: Vectors, other: Vectors) -> float:
        """Return how near two vectors are, 0 to 1."""
        return self._embedder.similarity(float(one @ other))

    def of_questions(self, texts: Sequence[str]) -> list[Vectors]:
        """Return one vector for each short text; the newest are remembered. Raises EmbedderFailed."""
        try:
            return self._space.question_vectors.of(texts, self._embedder.embed_questions)
        except EmbedderFailed:
            self._space.rests_until = time.monotonic() + COOLDOWN_SECONDS
            raise

    def familiarity(self, text: str) -> Familiarity:
        """Return how well the model knows a text."""
        return self._embedder.familiarity(text)

    def search(self, vector: Vectors, limit: int, within: ChunksInScope | None = None) -> list[Hit]:
        """Return up to ``limit`` chunk ids with their similarity (0 to 1), the nearest first.

        With ``within``, only of those.
        """
        hits = self._space.search(vector, limit, self._known.version, within)
        similarities = self._embedder.similarity(np.array([cosine for _, cosine in hits]))
        return [(chunk_id, one) for (chunk_id, _), one in zip(hits, similarities.tolist(), strict=True)]


class VectorSearch:
    """Gives the vectors that are searched now, and follows when another model's take their place."""

    def __init__(
        self, store: VectorStore, embedders: Embedders, open_index: Callable[[KnownEmbedder], ApproximateIndex]
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._open_index = open_index
        self._lock = threading.Lock()
        self._space: VectorSpace | None = None
        self._follows = False

    def follow(self) -> None:
        """Let the index follow SQL from now on: for the one process of a data folder that serves."""
        self._follows = True
        self.now()

    def now(self) -> ServingVectors | None:
        """Return the vectors to search, ``None`` while no embedding model is ready: then keywords search alone."""
        found = self._embedders.serving()
        if found is None:
            return None
        known, embedder = found
        with self._lock:
            if self._space is None or self._space.key != known.key:
                self.close()
                self._space = VectorSpace(self._store, known, self._open_index(known))
            if self._follows:
                self._space.index.start()
            rests = time.monotonic() < self._space.rests_until
            return None if rests else ServingVectors(known, embedder, self._space)

    def warm_up(self) -> None:
        """Make ready what the first question would wait for."""
        vectors = self.now()
        if vectors is not None and not vectors.empty:
            vectors.search(np.zeros(vectors.dimension, np.float32), 1)

    @property
    def failing(self) -> bool:
        """Whether the embedding model could not be loaded, or failed a moment ago."""
        rests = self._space is not None and time.monotonic() < self._space.rests_until
        return rests or self._embedders.problem is not None

    @property
    def index(self) -> ApproximateIndex | None:
        """The index of the vectors that are searched now, whether it runs or not."""
        return self._space.index if self._space is not None else None

    @property
    def notice(self) -> str | None:
        """What whoever looks after the server should know of the index, if anything."""
        return self._space.index.notice if self._space is not None else None

    def close(self) -> None:
        """End what the index runs."""
        if self._space is not None:
            self._space.index.close()
