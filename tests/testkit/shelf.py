"""A library of short documents for tests: stored, embedded by words, and searched."""

import hashlib
from collections.abc import Callable
from typing import Any

from rag_assistant.records import EVERYTHING, Chunk, Document, KnownEmbedder, NewDocument, Scope
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.retrieval.embeddings.registry import Embedder, Embedders
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.indexes.vector_search import VectorSearch
from rag_assistant.retrieval.search import Retriever
from rag_assistant.retrieval.terms import index_terms
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore, KeywordIndex
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.scope import ChunksInScope
from tests.testkit.embedders import WordHashEmbedder


def key_of(model: Any) -> str:
    """Return the key of a model's vectors."""
    probe = Embedder(model).probe
    return f"{model.name}#{hashlib.sha256(probe.tobytes()).hexdigest()[:8]}"


# The key of the quick embedder.
KEY = key_of(WordHashEmbedder())


class Shelf:
    """The stores of a library, with shortcuts to fill and search it."""

    def __init__(self, database: Database, make_embedder: Callable[[Any], Any] = lambda _: WordHashEmbedder()) -> None:
        self.database = database
        self.documents = DocumentStore(database, "here", "this process")
        self.chunks = ChunkStore(database)
        self.embeddings = EmbeddingStore(database)
        self.keywords = KeywordSearch(KeywordIndex(database))
        self.embedders = Embedders(self.embeddings, {"embedder": "test"}, make_embedder)
        self.vectors = VectorSearch(self.embeddings, self.embedders, NoIndex)  # type: ignore[arg-type]
        self.retriever = Retriever(self.chunks, self.keywords, self.vectors)

    def add(self, content: str = "one", name: str = "", **more: Any) -> Document:
        """Store a new, queued document."""
        document, new = self.documents.add(
            NewDocument(
                name or f"{content}.txt", "text/plain", len(content), f"sha of {content}", f"file of {content}", **more
            )
        )
        assert new
        return document

    def read(self, document: Document, *texts: str) -> bool:
        """Store the texts as the chunks of a document."""
        self.documents.take(document.id)
        whole, pieces = "\n".join(texts), []
        for place, text in enumerate(texts):
            start = whole.index(text)
            pieces.append(Chunk(place, start, start + len(text), text))
        return self.chunks.keep_text(document.id, ExtractedText(whole, "text/plain"), *index_terms("", pieces))

    def embed(self, document: Document) -> bool:
        """Embed the missing chunks."""
        embedder = self.embedders.configured()
        missing = self.embeddings.without_embedding(document.id, embedder.key)
        rows = embedder.embed([one.text for one in missing])
        pairs = [(one.chunk_id, row.tobytes()) for one, row in zip(missing, rows, strict=True)]
        return self.embeddings.keep_embeddings(document.id, embedder.key, pairs)

    def shelve(self, *texts: str, **more: Any) -> Document:
        """Store a searchable document with one chunk for each text."""
        document = self.add(texts[0], **more)
        self.read(document, *texts)
        self.embed(document)
        self.documents.finish(document.id, self.embedders.configured().key)
        return document

    def found(self, query: str, limit: int = 5, scope: Scope = EVERYTHING) -> list[str]:
        """Return the texts that a search finds."""
        return [passage.text for passage in self.retriever.search(query, limit, scope)]

    def nearest(self, text: str, within: ChunksInScope | None = None) -> list[int]:
        """Return the ids of the chunks nearest to a text."""
        vectors = self.vectors.now()
        assert vectors is not None
        return [number for number, _ in vectors.search(vectors.of_questions([text]), 5, within)[0]]


class NoIndex:
    """An index that is always unavailable."""

    name, state, notice = "none", "behind", None

    def __init__(self, _known: KnownEmbedder) -> None:
        pass

    def start(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def search(self, *_: object) -> list[tuple[int, float]]:
        """Raise that the index is unavailable."""
        raise IndexUnavailable("away")
