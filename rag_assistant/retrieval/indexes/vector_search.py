"""Vector search: in Chroma or pgvector; exactly, with NumPy, while these are unavailable and in small parts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import EmbedderFailed, IndexUnavailable
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.embeddings.registry import Embedder, Embedders
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.indexes.exact import ExactIndex

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.chroma import ChromaIndex
    from rag_assistant.retrieval.indexes.pgvector import PgVectorIndex
    from rag_assistant.storage.documents.embeddings import EmbeddingStore
    from rag_assistant.storage.documents.scope import ChunksInScope

    # An index of one embedding model's vectors, faster than scanning all.
    ApproximateIndex: TypeAlias = ChromaIndex | PgVectorIndex

log = logging.getLogger(__name__)

COOLDOWN_SECONDS = 10.0
MAX_QUESTIONS = 1024  # Their vectors are cached: 1.6 MB with 384 dimensions.
# More take more than 150 MB and a second to read, and are needed only until the index is there, 10 s after a start.
MAX_READ_AT_START = 100_000


class ServingVectors:
    """The vectors of one embedding model, its question embedder, and an index, with a fallback.

    ``model`` is the model as of the last request for the vectors.
    """

    def __init__(self, store: EmbeddingStore, model: KnownEmbedder, embedder: Embedder, index: ApproximateIndex):
        self.model = model
        self.embedder = embedder
        self.index = index
        self._exact = ExactIndex(store, model.key, model.dimension)
        # A conversation needs each of its questions several times.
        self._of_question = lru_cache(MAX_QUESTIONS)(lambda text: embedder.embed_questions([text])[0])
        self.familiarity = lru_cache(MAX_QUESTIONS)(embedder.familiarity)
        self._rests_until = 0.0

    @property
    def count(self) -> int:
        """The number of vectors."""
        added, dropped = self.model.version
        return added - dropped

    @property
    def failing(self) -> bool:
        """Whether the model failed a moment ago. It isn't used for a while: each question would wait for it."""
        return time.monotonic() < self._rests_until

    def compare(self, query: SearchQuery, texts: Sequence[str]) -> list[float]:
        """Return the similarity of each text to a question with its context, 0 to 1. Raises EmbedderFailed."""
        vector, *context = self.of_questions([query.text, query.context] if query.is_follow_up else [query.text])
        if context:
            vector = vector + np.float32(query.share) * context[0]
            vector /= float(np.linalg.norm(vector)) or 1.0
        return [self.similarity(vector, row) for row in self.embedder.embed(texts)]

    def similarity(self, one: Vectors, other: Vectors) -> float:
        """Return the similarity of two vectors, 0 to 1."""
        return self.embedder.similarity(float(one @ other))

    def of_questions(self, texts: Sequence[str]) -> list[Vectors]:
        """Return one vector for each short text; the latest are cached. Raises EmbedderFailed."""
        try:
            return [self._of_question(text) for text in texts]
        except EmbedderFailed:
            self._rests_until = time.monotonic() + COOLDOWN_SECONDS
            raise

    def search(self, vectors: Sequence[Vectors], limit: int, within: ChunksInScope | None = None) -> list[list[Hit]]:
        """Return for each vector up to ``limit`` chunk ids with their similarity (0 to 1), nearest first.

        With ``within``, only of those.
        """
        try:
            hits = self.index.search(vectors, limit, self.model.version, within)
            self._exact.release()
        except IndexUnavailable as error:
            log.debug("The exact index answers: %s", error)
            hits = self._exact.search(vectors, limit, self.model.version, within)
        return [[(chunk_id, self.embedder.similarity(cosine)) for chunk_id, cosine in some] for some in hits]


class VectorSearch:
    """Returns the vectors in use, and follows when another model takes over."""

    def __init__(
        self, store: EmbeddingStore, embedders: Embedders, open_index: Callable[[KnownEmbedder], ApproximateIndex]
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._open_index = open_index
        self._lock = threading.Lock()
        self._vectors: ServingVectors | None = None
        self._follows = False

    def follow(self) -> None:
        """Make the index follow SQL: for the one process of a data folder that serves."""
        self._follows = True
        self.now()

    def now(self, stored: KnownEmbedder | None = None) -> ServingVectors | None:
        """Return the vectors to search, ``None`` while no embedding model is ready: then there is only keyword search.

        They are those of the ``stored`` model, if the caller has read it already.
        """
        serving = self._embedders.serving(stored)
        if serving is None:
            return None
        stored, embedder = serving
        with self._lock:
            if self._vectors is None or (self._vectors.model.key, self._vectors.embedder) != (stored.key, embedder):
                self.close()
                self._vectors = ServingVectors(self._store, stored, embedder, self._open_index(stored))
            self._vectors.model = stored
            if self._follows:
                self._vectors.index.start()
            return None if self._vectors.failing else self._vectors

    def warm_up(self) -> None:
        """Load what the first question would wait for."""
        vectors = self.now()
        if vectors is not None and 0 < vectors.count <= MAX_READ_AT_START:
            vectors.search([np.zeros(vectors.model.dimension, np.float32)], 1)

    @property
    def failing(self) -> bool:
        """Whether the embedding model could not be loaded, or failed a moment ago."""
        return self._embedders.problem is not None or (self._vectors is not None and self._vectors.failing)

    @property
    def index(self) -> ApproximateIndex | None:
        """The index of the vectors in use, running or not."""
        return self._vectors.index if self._vectors is not None else None

    @property
    def notice(self) -> str | None:
        """A notice about the index for administrators, if any."""
        return self.index.notice if self.index is not None else None

    def close(self) -> None:
        """Stop the index."""
        if self.index is not None:
            self.index.close()
