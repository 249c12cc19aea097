"""Search vectors exactly, by bits, and through Chroma, in libraries of several sizes: which is used from where on?

And how long a whole search takes there: keywords, vectors, passages.
"""

from __future__ import annotations

import random
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from bench.retrieval import sets
from bench.stage import cpu_seconds, open_database
from rag_assistant.records import Chunk, NewDocument
from rag_assistant.records.errors import IndexUnavailable
from rag_assistant.records.extracted import ExtractedText
from rag_assistant.retrieval.embeddings.familiarity import FAMILIAR, Familiarity
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.retrieval.indexes.exact import ExactIndex
from rag_assistant.retrieval.indexes.quantized import QuantizedIndex
from rag_assistant.retrieval.search import CANDIDATES, Retriever
from rag_assistant.retrieval.terms import index_terms, query_terms
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.keywords import KeywordIndex
from rag_assistant.storage.documents.scope import ChunksInScope

SIZES = (1_000, 10_000, 20_000, 30_000, 100_000)
DIMENSION = 384
QUERIES = 200
MIN_LETTERS = 4
ROUNDING = 1e-5
WHOLE_SIZES = (10_000, 100_000)
CHUNKS_OF_A_DOCUMENT = 500
CHUNK_CHARS = 900


class Words:
    """An embedding model that takes next to no time: each longer word of a text adds to one of its numbers.

    With random vectors no passage would be near to its question, and a search goes on to look at sentences then.
    """

    name = "words"

    def load(self) -> None:
        """There is nothing to load."""

    def close(self) -> None:
        """There is nothing to give back."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text."""
        rows = np.empty((len(texts), DIMENSION), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = [word for word in text.lower().split() if len(word) >= MIN_LETTERS] or [text]
            row[:] = np.bincount([zlib.crc32(word.encode()) % DIMENSION for word in words], minlength=DIMENSION)
            row /= np.linalg.norm(row)
        return rows


class Store:
    """Vectors with the ids from 1 on."""

    def __init__(self, rows: Vectors) -> None:
        self.rows = rows

    def version(self, _embedder: str) -> tuple[int, int]:
        """Return how many were added and deleted."""
        return len(self.rows), 0

    def vectors_after(self, _embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` vectors with an id above ``chunk_id``."""
        last = min(len(self.rows), chunk_id + limit)
        return [(number, self.rows[number - 1].tobytes()) for number in range(chunk_id + 1, last + 1)]

    def embedded_ids(self, _embedder: str) -> list[int]:
        """Return the ids of all."""
        return list(range(1, len(self.rows) + 1))


def main() -> None:
    """Print what a search costs for each size, and how much of the exact answer is found."""
    if not sets.DATA.exists():
        print("The shared data is not beside the checkout.")
        return
    collection = sets.mtrag()
    questions = Words().embed([asked.rewrite for asked in collection.questions][:QUERIES])
    texts = [f"{title} {text}"[:CHUNK_CHARS] for title, text in collection.documents.values()]
    pairs, chance = Words().embed(texts), np.random.default_rng(1)
    print("| chunks | exact, CPU ms | by bits, CPU ms | found | Chroma, CPU ms | found | seconds to build in Chroma |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        rows = sum(pairs[chance.integers(0, len(pairs), size)] for _ in range(2))
        store = Store(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        exact, quantized = (kind(store, "bench", DIMENSION) for kind in (ExactIndex, QuantizedIndex))
        exact.refresh((size, 0))
        quantized.refresh((size, 0))
        taken = [measured(partial(one.search, limit=CANDIDATES), questions, store) for one in (exact, quantized)]
        with tempfile.TemporaryDirectory() as folder:
            chroma = ChromaIndex(store, "bench", None, Path(folder) / "chroma")
            try:
                began = time.monotonic()
                chroma.start()
                wait_until_filled(chroma, store)
                filled = time.monotonic() - began
                taken.append(measured(partial(chroma.search, limit=CANDIDATES, version=(size, 0)), questions, store))
            finally:
                chroma.close()
        (exact_ms, _), (bits_ms, by_bits), (chroma_ms, by_chroma) = taken
        print(
            f"| {size:,} | {exact_ms:.1f} | {bits_ms:.1f} | {by_bits:.3f} | {chroma_ms:.1f} | {by_chroma:.3f} "
            f"| {filled:.0f} |",
            flush=True,
        )
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


def random_vectors(size: int) -> Vectors:
    """Return random vectors of length 1."""
    rows = np.random.default_rng(1).standard_normal((size, DIMENSION)).astype(np.float32)
    made: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made


def times_of_search(database: Database, size: int, questions: list[str]) -> tuple[str, str]:
    """Return the times of a keyword search and of a whole one."""
    vectors, keywords = Store(random_vectors(size)), KeywordIndex(database)
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


def measured(
    search: Callable[[Vectors], list[tuple[int, float]]], questions: Vectors, store: Store
) -> tuple[float, float]:
    """Return the mean CPU milliseconds of a search, and how much of the nearest it finds: as near is as good."""
    search(questions[0])
    process = psutil.Process()
    began = cpu_seconds(process)
    found = [search(question) for question in questions]
    taken = (cpu_seconds(process) - began) * 1000 / len(questions)
    shares = []
    for question, hits in zip(questions, found, strict=True):
        cosines = store.rows @ question
        least = np.partition(cosines, -CANDIDATES)[-CANDIDATES]
        shares.append(sum(cosines[number - 1] >= least - ROUNDING for number, _ in hits) / CANDIDATES)
    return taken, float(np.mean(shares))
