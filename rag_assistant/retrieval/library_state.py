"""The library as one question sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_assistant.records import Scope

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.vector_search import VectorSearch
    from rag_assistant.storage.documents.chunks import ChunkStore


class LibraryState:
    """What a question has to know of the library, read once; ``vectors`` are None while no embedding model is ready."""

    def __init__(self, chunks: ChunkStore, vectors: VectorSearch, scope: Scope) -> None:
        self.scope = scope
        self.within, self.pending, self.keywords, model = chunks.library(scope)
        self.vectors = vectors.now(model)
