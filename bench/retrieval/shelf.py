"""A collection in the product's own store and indexes, searched by each method alone and by both."""

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from bench.retrieval.cache import Cached
from bench.retrieval.sets import Collection
from bench.stage import open_database
from rag_assistant.extraction.formats.kinds import PLAIN
from rag_assistant.records import Chunk, NewDocument, Passage
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document, indexed_text
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.search import CANDIDATES
from rag_assistant.retrieval.terms import index_terms, query_terms
from rag_assistant.retrieval.tokenize import search_words
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.database import Database
from tests.testkit.shelf import Shelf

CHUNK_CHARS: int = Settings.model_fields["chunk_chars"].default
LOOKED_AT = 30  # How many chunks of each search are examined for the first ten documents.


class CollectionShelf(Shelf):
    """A collection as a library. A hit's document name is its id in the collection."""

    def __init__(self, database: Database, collection: Collection, embedder: Cached) -> None:
        super().__init__(database, lambda _source: embedder)
        self._key = self.embedders.configured().key
        self._embedder = embedder
        self._names: dict[int, str] = {}
        self.document_of: dict[int, str] = {}
        self._plain = sqlite3.connect(":memory:")
        self._plain.execute("CREATE VIRTUAL TABLE plain USING fts5(words, tokenize='unicode61 remove_diacritics 2')")
        for name, (title, text) in collection.documents.items():
            extracted = ExtractedText(text, PLAIN)
            self.put(name, title, extracted, chunk_document(extracted, CHUNK_CHARS))
        self.size = self.embeddings.version(self._key)[0]

    def put(self, name: str, title: str, extracted: ExtractedText, pieces: list[Chunk]) -> int:
        """Add a document under ``name``, and return its id."""
        document, _ = self.documents.add(NewDocument(title or "-", PLAIN, len(extracted.text), name, name))
        self.documents.take(document.id)
        self._names[document.id] = name
        texts = [indexed_text(title, piece.section, piece.text) for piece in pieces]
        self.chunks.keep_text(document.id, extracted, *index_terms(title, pieces))
        words = [" ".join(search_words(one)) for one in texts]
        rows = self._embedder.embed(texts)
        ids = [one.chunk_id for one in self.embeddings.without_embedding(document.id, self._key)]
        self.document_of |= dict.fromkeys(ids, name)
        vectors = [(chunk_id, row.tobytes()) for chunk_id, row in zip(ids, rows, strict=True)]
        if vectors:
            self.embeddings.keep_embeddings(document.id, self._key, vectors)
        self._plain.executemany("INSERT INTO plain (rowid, words) VALUES (?, ?)", zip(ids, words, strict=True))
        return document.id

    def by_plain_bm25(self, question: str, limit: int = LOOKED_AT) -> list[Passage]:
        """Return what BM25 finds with all words unchanged: k1 = 1.2, b = 0.75, no stemming, no stop words."""
        any_word = " OR ".join(f'"{word}"' for word in dict.fromkeys(search_words(question)))
        query = "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"
        return self._passages([row[0] for row in self._plain.execute(query, (any_word, limit))] if any_word else [])

    def by_keywords(self, question: str, limit: int = LOOKED_AT) -> list[Passage]:
        """Return what the product's keyword search alone finds."""
        terms = query_terms(question, self.keywords.store.state().languages)
        return self._passages([hit for hit, _ in self.keywords.search(terms, CANDIDATES)][:limit])

    def by_vectors(self, question: str, limit: int = LOOKED_AT) -> list[Passage]:
        """Return what vectors alone find."""
        vectors = self.vectors.now()
        if vectors is None:
            raise RuntimeError("The embedder is not loaded.")
        (vector,) = vectors.of_questions([question])
        return self._passages([hit for hit, _ in vectors.search([vector], limit)[0]])

    def by_both(self, question: str | SearchQuery, limit: int = LOOKED_AT) -> list[Passage]:
        """Return what the product finds."""
        return self._named(self.retriever.search(question, limit))

    def _passages(self, chunk_ids: Sequence[int]) -> list[Passage]:
        return self._named(self.chunks.passages(dict.fromkeys(chunk_ids, 0.0)))

    def _named(self, passages: Sequence[Passage]) -> list[Passage]:
        return [replace(one, document=self._names[one.document_id]) for one in passages]


@contextmanager
def shelf_of(collection: Collection, embedder: Cached) -> Iterator[CollectionShelf]:
    """Give a collection as a library."""
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        try:
            yield CollectionShelf(database, collection, embedder)
        finally:
            database.close()


def names_of(passages: Sequence[Passage]) -> list[str]:
    """Return the documents of some passages, without duplicates, in order."""
    return list(dict.fromkeys(one.document for one in passages))
