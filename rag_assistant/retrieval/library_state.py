"""The library as one question sees it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rag_assistant.records import Scope

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
    from rag_assistant.retrieval.indexes.vector_search import ServingVectors, VectorSearch
    from rag_assistant.storage.documents.chunks import ChunkStore, KeywordState
    from rag_assistant.storage.documents.scope import ChunksInScope


class LibraryState:
    """What a question has to know of the library; each part is read once, when it is first needed."""

    def __init__(self, chunks: ChunkStore, keywords: KeywordSearch, vectors: VectorSearch, scope: Scope) -> None:
        self._chunks = chunks
        self._keywords = keywords
        self._vectors = vectors
        self.scope = scope

    @cached_property
    def within(self) -> ChunksInScope | None:
        """The readable chunks of the scope; ``None`` if that is every chunk."""
        return self._chunks.within(self.scope)

    @cached_property
    def pending(self) -> set[int]:
        """The chunks that may not be found yet, or not any more."""
        return self._chunks.pending_ids()

    @cached_property
    def keywords(self) -> KeywordState:
        """What is indexed of its words."""
        return self._keywords.state()

    @cached_property
    def vectors(self) -> ServingVectors | None:
        """The vectors to search; ``None`` while no embedding model is ready."""
        return self._vectors.now()
