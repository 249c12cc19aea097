"""Find the passages that a question needs: by keywords and by vectors, fused, and checked against SQL."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from rag_assistant.errors import EmbedderFailed
from rag_assistant.records import EVERYTHING, Passage, Scope
from rag_assistant.retrieval.embedding import Vectors
from rag_assistant.retrieval.fusion import Hit, fuse
from rag_assistant.retrieval.sentences import nearest_sentences, sentences_of
from rag_assistant.retrieval.words import query_words

log = logging.getLogger(__name__)

CANDIDATES = 100  # How many hits each half contributes before they are fused.


class Keywords(Protocol):
    """Finds chunks by their words."""

    def search(self, words: Sequence[str], limit: int, scope: Scope = EVERYTHING) -> list[Hit]:
        """Return chunk ids with a score, the best first."""


class ActiveVectors(Protocol):
    """Embeds a question, and finds chunks by their vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each text."""

    def search(self, vector: Vectors, limit: int, chunk_ids: Collection[int] | None = None) -> list[Hit]:
        """Return chunk ids with their cosine, the nearest first."""


class VectorIndex(Protocol):
    """Knows which vectors are searched now."""

    def now(self) -> ActiveVectors | None:
        """Return them, ``None`` while no embedding model is ready."""


class Chunks(Protocol):
    """The truth about which chunks exist."""

    def passages(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return the chunks that exist, by id."""

    def chunk_ids_of(self, scope: Scope) -> set[int]:
        """Return the ids of all chunks of the documents that are searched."""


class Retriever:
    """Searches the library. A document that was deleted is never found, whatever an index still holds."""

    def __init__(self, chunks: Chunks, keywords: Keywords, vectors: VectorIndex) -> None:
        self._chunks = chunks
        self._keywords = keywords
        self._vectors = vectors

    def search(self, query: str, limit: int, scope: Scope = EVERYTHING) -> list[Passage]:
        """Return up to ``limit`` passages of the scope, the best first.

        While the embedding model is not loaded, or does not work, keywords search alone.
        """
        if limit == 0:
            return []
        by_keyword = self._keywords.search(query_words(query), CANDIDATES, scope)
        ranked = fuse(by_keyword, self._by_vector(query, scope))
        return self._existing(ranked, limit)

    def sentences(self, question: str, passages: Sequence[str], limit: int) -> list[str]:
        """Return the sentences of some passages that are nearest to a question, in the order of the passages.

        Where the embedding model does not work, the first ones.
        """
        vectors = self._vectors.now()
        try:
            if vectors is not None:
                return nearest_sentences(question, passages, vectors.embed, limit)
        except EmbedderFailed as error:
            log.warning("The first sentences are taken for the nearest: %s", error)
        return [sentence for passage in passages for sentence in sentences_of(passage)][:limit]

    def _by_vector(self, query: str, scope: Scope) -> list[Hit]:
        vectors = self._vectors.now()
        if vectors is None or not query.strip():
            return []
        try:
            (vector,) = vectors.embed([query])
        except EmbedderFailed as error:
            log.warning("Searching by keywords alone: %s", error)
            return []
        allowed = self._chunks.chunk_ids_of(scope) if scope else None
        return vectors.search(vector, CANDIDATES, allowed)

    def _existing(self, ranked: Iterable[Hit], limit: int) -> list[Passage]:
        """Return the first ``limit`` hits that SQL still knows."""
        hits = list(ranked)
        found: list[Passage] = []
        for start in range(0, len(hits), limit):
            some = hits[start : start + limit]
            passages = self._chunks.passages([chunk_id for chunk_id, _ in some])
            found += [replace(passages[chunk_id], score=score) for chunk_id, score in some if chunk_id in passages]
            if len(found) >= limit:
                break
        return found[:limit]
