"""The cost of a search after its question is embedded: keywords, vectors and passages, in the whole library and in
half.

Real passages and questions (mtrag), vectors by words, and the index that the product would use. CPU time of this
process and of Chroma's, each question asked once. Beside it, on the same machine, a plain product of all vectors.
"""

import itertools
import random
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray
from sqlalchemy import insert, select, update

from bench import aims
from bench.aims import Figure, Figures
from bench.retrieval import sets
from bench.stage import cpu_seconds, open_database
from rag_assistant.records import EVERYTHING, Chunk, KnownEmbedder, NewDocument, Scope
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.embeddings.minilm import Vectors
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.indexes.vector_search import VectorSearch
from rag_assistant.retrieval.search import CANDIDATES, Retriever
from rag_assistant.retrieval.terms import index_terms, query_terms
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore, KeywordIndex
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.tables import chunks, document_tags, documents, embedders, embeddings

SIZES = (10_000, 100_000)
PASSAGES = 5
HALF = "half"
ROWS_AT_ONCE = 20_000
QUESTIONS_FOR_RECALL = 200
DIMENSION = 384
MIN_LETTERS = 4
ROUNDING = 1e-5
CHUNKS_OF_A_DOCUMENT = 500
CHUNK_CHARS = 900


class Words:
    """A very fast embedding model: each longer word of a text adds to one of its numbers.

    With random vectors no passage would be near its question, and a search then continues with sentences.
    """

    name = "words"

    def load(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.empty((len(texts), DIMENSION), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = [word for word in text.lower().split() if len(word) >= MIN_LETTERS] or [text]
            row[:] = np.bincount([zlib.crc32(word.encode()) % DIMENSION for word in words], minlength=DIMENSION)
            row /= np.linalg.norm(row)
        return rows


def main() -> Figures:
    """Print the cost of a search in libraries of several sizes."""
    found = [measured(size) for size in SIZES] if sets.DATA.exists() else []
    if not found:
        return aims.without("searches", "the shared data is not beside the checkout")
    return {
        "scoped": Figure(tuple(one.scoped for one in found)),
        "hybrid": Figure(tuple(one.whole for one in found)),
        "recall": Figure(tuple(one.recall for one in found)),
    }


class Measured(NamedTuple):
    """The CPU ms of a keyword search, of a whole one and of one in half of the library, and the vectors' recall."""

    keywords: float
    whole: float
    scoped: float
    recall: float


def measured(size: int) -> Measured:
    """Print and return the cost of a search in a library of this size, and its recall."""
    collection = sets.mtrag()
    texts = [f"{title} {text}"[:CHUNK_CHARS] for title, text in collection.documents.values()]
    questions = itertools.cycle([asked.rewrite for asked in collection.questions])
    each = len(collection.questions) // 3
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        library = Library(database, Path(folder))
        library.fill(texts, size)
        library.wait_for_index()
        ids, rows = library.matrix()
        tasks: dict[str, Callable[[str], object]] = {
            "keywords": library.keywords,
            "whole search": lambda question: library.retriever.search(question, PASSAGES, EVERYTHING),
            "in half of it": lambda question: library.retriever.search(question, PASSAGES, Scope(tags=(HALF,))),
            "NumPy product": lambda question: np.argpartition(rows @ Words().embed([question])[0], -CANDIDATES),
        }
        spent = {name: cpu_ms(task, list(itertools.islice(questions, each))) for name, task in tasks.items()}
        recall = library.recall([asked.rewrite for asked in collection.questions][:QUESTIONS_FOR_RECALL], ids, rows)
        told = ", ".join(f"{name} {ms:.1f}" for name, ms in spent.items())
        print(f"{size:,} chunks, CPU ms: {told}; recall {recall:.3f}", flush=True)
        library.close()
        database.close()
    keywords, whole, scoped, _ = spent.values()
    return Measured(keywords, whole, scoped, recall)


class Library:
    """Chunks with their vectors, half of whose documents have a tag, and their search."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._keywords = KeywordSearch(KeywordIndex(database))
        self._store = EmbeddingStore(database)
        self._embedders = Embedders(self._store, {"embedder": "bench"}, lambda _source: Words())
        self._folder = folder
        self._vectors = VectorSearch(self._store, self._embedders, self._open_index)
        self.retriever = Retriever(ChunkStore(database), self._keywords, self._vectors)

    def _open_index(self, known: KnownEmbedder) -> ChromaIndex:
        return ChromaIndex(self._store, known, self._folder / "chroma")

    def keywords(self, question: str) -> object:
        """Search by keywords alone."""
        return self._keywords.search(query_terms(question, self._keywords.store.state().languages), CANDIDATES)

    def fill(self, texts: list[str], size: int) -> None:
        """Store ``size`` chunks, made of the texts."""
        fill(DocumentStore(self._database, "bench"), ChunkStore(self._database), texts, size)
        key, model = self._embedders.configured().key, Words()
        with self._database.write() as connection:
            tagged = select(documents.c.id).where(documents.c.id % 2 == 0)
            connection.execute(
                insert(document_tags), [{"document_id": n, "tag": HALF} for n in connection.execute(tagged).scalars()]
            )
            connection.execute(update(documents).values(state="ready", embedded=documents.c.chunks))
            held = connection.execute(select(chunks.c.id, chunks.c.text).order_by(chunks.c.id)).all()
            for first in range(0, len(held), ROWS_AT_ONCE):
                some = held[first : first + ROWS_AT_ONCE]
                pairs = zip(some, model.embed([text for _, text in some]), strict=True)
                rows = [{"chunk_id": one.id, "embedder": key, "vector": vector.tobytes()} for one, vector in pairs]
                connection.execute(insert(embeddings), rows)
            connection.execute(update(embedders).values(additions=len(held)))

    def wait_for_index(self) -> None:
        """Read words and vectors; wait until Chroma has them, if there are enough for it."""
        self._keywords.load()
        self._vectors.follow()
        index = self._vectors.index
        while index is not None and index.state != "ready":
            time.sleep(1)

    def matrix(self) -> tuple[NDArray[np.int64], Vectors]:
        """Return all ids and vectors."""
        key, last, read = self._embedders.configured().key, 0, [np.empty((0, DIMENSION), np.float32)]
        while rows := self._store.vectors_after(key, last, ROWS_AT_ONCE):
            last = rows[-1][0]
            read.append(np.frombuffer(b"".join(vector for _, vector in rows), np.float32).reshape(-1, DIMENSION))
        return np.array(self._store.embedded_ids(key)), np.concatenate(read)

    def recall(self, questions: Sequence[str], ids: NDArray[np.int64], rows: Vectors) -> float:
        """Return how much of the nearest of all vectors is found; equally near ones count."""
        vectors = self._vectors.now()
        assert vectors is not None
        asked = Words().embed(questions)
        cosines = rows @ asked.T
        least = np.partition(cosines, -CANDIDATES, axis=0)[-CANDIDATES] - ROUNDING
        found = 0
        for number, vector in enumerate(asked):
            hits = np.searchsorted(ids, [chunk_id for chunk_id, _ in vectors.search([vector], CANDIDATES)[0]])
            found += int(np.sum(cosines[hits, number] >= least[number]))
        return found / (CANDIDATES * len(questions))

    def close(self) -> None:
        """Stop everything."""
        self._vectors.close()
        self._keywords.close()


def fill(documents: DocumentStore, store: ChunkStore, texts: list[str], size: int) -> None:
    """Store chunks of real words: those of the texts, mixed in pairs so that no two are the same."""
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


def cpu_ms(task: Callable[[str], object], questions: list[str]) -> float:
    """Return the mean CPU milliseconds of a task, including those of other processes."""
    task(questions[0])
    process = psutil.Process()
    began = cpu_seconds(process)
    for question in questions[1:]:
        task(question)
    return (cpu_seconds(process) - began) * 1000 / (len(questions) - 1)
