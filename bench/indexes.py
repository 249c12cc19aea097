"""Search vectors exactly and through Chroma, in libraries of several sizes: from where on is the index worth it?

And how long a whole search takes there: keywords, vectors, passages.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench.retrieval import sets
from bench.stage import open_database
from rag_assistant.errors import IndexUnavailable
from rag_assistant.extracted import ExtractedText
from rag_assistant.records import Chunk, NewDocument
from rag_assistant.retrieval.embeddings.familiarity import FAMILIAR, Familiarity
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.retrieval.search import CANDIDATES, Retriever
from rag_assistant.retrieval.terms import index_terms, query_terms
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.keywords import KeywordIndex
from rag_assistant.storage.documents.scope import ChunksInScope

SIZES = (1_000, 10_000, 30_000, 60_000, 100_000)
DIMENSION = 384
QUERIES = 50
WHOLE_SIZES = (10_000, 100_000)
CHUNKS_OF_A_DOCUMENT = 500
CHUNK_CHARS = 900


class Store:
    """Random vectors of length 1 with the ids from 1 on."""

    def __init__(self, size: int) -> None:
        rows = np.random.default_rng(1).standard_normal((size, DIMENSION)).astype(np.float32)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def version(self, _embedder: str) -> tuple[int, int]:
        """Return how many were added and deleted."""
        return len(self.rows), 0

    def vectors_after(self, _embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` vectors with an id above ``chunk_id``."""
        last = min(len(self.rows), chunk_id + limit)
        return [(number, self.rows[number - 1].tobytes()) for number in range(chunk_id + 1, last + 1)]


def main() -> None:
    """Print the time of a search for each size, and how much of the exact answer Chroma finds."""
    print("| chunks | exact ms | Chroma ms | found by both | seconds to build in Chroma |\n|---|---|---|---|---|")
    for size in SIZES:
        store = Store(size)
        exact = ExactIndex(store, "bench", DIMENSION)
        exact.refresh(store.version("bench"))
        with tempfile.TemporaryDirectory() as folder:
            chroma = ChromaIndex(store, "bench", None, Path(folder) / "chroma")
            try:
                began = time.monotonic()
                chroma.start()
                wait_until_filled(chroma, store)
                filled = time.monotonic() - began
                exact_ms, wanted = measure(store, partial(exact.search, limit=CANDIDATES))
                search = partial(chroma.search, limit=CANDIDATES, version=store.version("bench"))
                chroma_ms, found = measure(store, search)
            finally:
                chroma.close()
        shared = sum(len(a & b) for a, b in zip(wanted, found, strict=True)) / sum(map(len, wanted))
        print(f"| {size:,} | {exact_ms:.1f} | {chroma_ms:.1f} | {shared:.0%} | {filled:.0f} |", flush=True)
    whole_search()


def whole_search() -> None:
    """Print the time of a whole search of real text, with exact vectors, once its question is embedded."""
    if not sets.DATA.exists():
        return
    print("\n| chunks | keywords ms, p50 and p95 | whole search ms, p50 and p95 |\n|---|---|---|")
    collection = sets.mtrag()
    texts = [f"{title} {text}"[:CHUNK_CHARS] for title, text in collection.documents.values()]
    questions = [asked.rewrite for asked in collection.questions]
    for size in WHOLE_SIZES:
        with tempfile.TemporaryDirectory() as folder:
            database = open_database(Path(folder))
            fill(DocumentStore(database, "bench"), ChunkStore(database), texts, size)
            alone, whole = times_of_search(database, size, questions)
            database.close()
        print(f"| {size:,} | {alone} | {whole} |", flush=True)


def times_of_search(database: Database, size: int, questions: list[str]) -> tuple[str, str]:
    """Return the times of a keyword search and of a whole one."""
    vectors, keywords = Store(size), KeywordIndex(database)
    retriever = Retriever(ChunkStore(database), keywords, KnownVectors(vectors))
    alone = times(
        lambda question: keywords.search(query_terms(question, keywords.state().languages), CANDIDATES), questions
    )
    return alone, times(lambda question: retriever.search(question, 5), questions)


def fill(documents: DocumentStore, store: ChunkStore, texts: list[str], size: int) -> None:
    """Put chunks of real words into a store: those of the texts, mixed in pairs so that no two are the same."""
    chance = random.Random(1)
    for first in range(0, size, CHUNKS_OF_A_DOCUMENT):
        name = f"{first}"
        document, _ = documents.add(NewDocument(name, "text/plain", 1, name, name))
        documents.take(document.id)
        pieces = []
        for place in range(min(CHUNKS_OF_A_DOCUMENT, size - first)):
            one, other = chance.sample(texts, 2)
            pieces.append(Chunk(place, place, place, one[: CHUNK_CHARS // 2] + " " + other[: CHUNK_CHARS // 2]))
        store.keep_text(document.id, ExtractedText("", "text/plain"), *index_terms("", pieces))


def times(search: Callable[[str], object], questions: list[str]) -> str:
    """Return the median and the 95th percentile of the milliseconds of a search."""
    search(questions[0])
    taken = []
    for question in questions:
        began = time.perf_counter()
        search(question)
        taken.append((time.perf_counter() - began) * 1000)
    return f"{np.percentile(taken, 50):.1f} and {np.percentile(taken, 95):.1f}"


class KnownVectors:
    """Vectors whose embedder needs no time: each text has one of those that are there."""

    def __init__(self, store: Store) -> None:
        self._rows = store.rows
        self._exact = ExactIndex(store, "bench", DIMENSION)
        self._exact.refresh(store.version("bench"))

    empty = False
    failing = False

    def now(self) -> KnownVectors:
        """Return these."""
        return self

    def search(self, vector: Vectors, limit: int, _within: ChunksInScope | None = None) -> list[tuple[int, float]]:
        """Return the nearest of all."""
        return self._exact.search(vector, limit)

    def of_questions(self, texts: Sequence[str]) -> list[Vectors]:
        """Return a vector for each text."""
        return list(self.embed(texts))

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the cosine of each text with a question."""
        (vector,) = self.embed([question])
        return [self.similarity(vector, row) for row in self.embed(texts)]

    def similarity(self, one: Vectors, other: Vectors) -> float:
        """Return the cosine of two vectors."""
        return float(one @ other)

    def familiarity(self, _text: str) -> Familiarity:
        """Return that every text is well known."""
        return FAMILIAR

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text."""
        rows: Vectors = self._rows[[len(text) % len(self._rows) for text in texts]]
        return rows


def wait_until_filled(chroma: ChromaIndex, store: Store) -> None:
    """Wait until Chroma answers for all vectors."""
    while True:
        try:
            chroma.search(store.rows[0], 1, store.version("bench"))
        except IndexUnavailable:
            time.sleep(0.2)
        else:
            return


def measure(store: Store, search: Callable[[Vectors], list[tuple[int, float]]]) -> tuple[float, list[set[int]]]:
    """Return the milliseconds that a search takes, and what each found."""
    queries = store.rows[:QUERIES]
    search(queries[0])
    began = time.monotonic()
    found = [{number for number, _ in search(vector)} for vector in queries]
    return (time.monotonic() - began) * 1000 / len(queries), found
