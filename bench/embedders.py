"""Choose the embedder and the fusion: quality on real data sets, and chunks per second, for each candidate.

Needs the shared data. Each passage of a data set is one chunk.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.retrieval.cache import MODELS
from bench.retrieval.measures import hit_at_1, ndcg_at_10, recall_at_5
from bench.stage import open_database
from rag_assistant.records import Chunk, NewDocument
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval import hybrid
from rag_assistant.retrieval.embeddings.minilm import MiniLM, Vectors
from rag_assistant.retrieval.embeddings.multilingual_e5 import MultilingualE5
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.search import CANDIDATES
from rag_assistant.retrieval.terms import index_terms, query_terms
from rag_assistant.storage.documents.chunks import ChunkStore, KeywordIndex
from rag_assistant.storage.documents.documents import DocumentStore

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WEIGHTS = (0.7, 0.65, 0.6, 0.5, 0.4, 0.3)


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    def embed(self, texts: Sequence[str]) -> Vectors: ...


class Wordllama:
    """Static word vectors, 256 numbers, averaged: the fast candidate."""

    def __init__(self) -> None:
        import wordllama

        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text."""
        rows: Vectors = np.asarray(self._model.embed(list(texts), norm=True), np.float32)
        return rows


@dataclass
class DataSet:
    """Passages, questions, and the grade (above 0) of each relevant passage of a question."""

    name: str
    measure: str
    passages: dict[str, str]
    questions: dict[str, str]
    relevant: dict[str, dict[str, int]]


def main() -> None:
    """Print a table: a row for each data set and search method."""
    if not DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    embedders: dict[str, Embedder] = {
        "MiniLM int8": MiniLM(MODELS),
        "multilingual-e5": MultilingualE5(),
        "wordllama": Wordllama(),
    }
    print("| data set | measure | keywords | " + " | ".join(f"{n} alone | + {n}" for n in embedders) + " |")
    print("|---|---|---|" + "---|---|" * len(embedders))
    speed: dict[str, list[float]] = {name: [0.0, 0.0] for name in embedders}
    by_weight: dict[str, dict[float, list[float]]] = {name: {w: [] for w in WEIGHTS} for name in embedders}
    for data in data_sets():
        keyword_hits = search_by_keywords(data)
        row = [score(data, keyword_hits)]
        for name, embedder in embedders.items():
            began = time.perf_counter()
            rows = embedder.embed(list(data.passages.values()))
            speed[name][0] += len(rows)
            speed[name][1] += time.perf_counter() - began
            vector_hits = search_by_vectors(data, rows, embedder)
            for weight in WEIGHTS:
                by_weight[name][weight].append(score(data, fused(keyword_hits, vector_hits, weight)))
            row += [score(data, vector_hits), score(data, fused(keyword_hits, vector_hits, hybrid.VECTOR_WEIGHT))]
        print(f"| {data.name} | {data.measure} | " + " | ".join(f"{value:.3f}" for value in row) + " |", flush=True)
    print("\n| embedder | chunks per second | " + " | ".join(f"mean at vector weight {w}" for w in WEIGHTS) + " |")
    print("|---|---|" + "---|" * len(WEIGHTS))
    for name, (count, seconds) in speed.items():
        means = " | ".join(f"{sum(by_weight[name][w]) / len(by_weight[name][w]):.3f}" for w in WEIGHTS)
        print(f"| {name} | {count / seconds:.0f} | {means} |")


def data_sets() -> list[DataSet]:
    """Return the data sets of the comparison."""
    return [judged("cranfield"), judged("cacm"), mtrag(), *(xquad(language) for language in ("en", "de", "zh"))]


def judged(name: str) -> DataSet:
    """Return a collection with graded judgements."""
    passages = {row["_id"]: f"{row.get('title') or ''}\n{row['text']}".strip() for row in lines(f"{name}/corpus.jsonl")}
    questions = {row["_id"]: row["text"] for row in lines(f"{name}/queries.jsonl")}
    relevant: dict[str, dict[str, int]] = {}
    for line in (DATA / name / "qrels.tsv").read_text().splitlines()[1:]:
        query, passage, grade = line.split("\t")[:3]
        relevant.setdefault(query, {})[passage] = int(grade)
    return DataSet(name, "nDCG@10", passages, {q: questions[q] for q in relevant if q in questions}, relevant)


def mtrag() -> DataSet:
    """Return the questions of conversations in their standalone form."""
    passages = {
        row["_id"]: f"{row.get('title') or ''}\n{row['text']}".strip()
        for domain in ("clapnq", "govt")
        for row in lines(f"mtrag/corpus_{domain}.jsonl")
    }
    relevant: dict[str, dict[str, int]] = {}
    for line in (DATA / "mtrag" / "qrels.tsv").read_text().splitlines()[1:]:
        _domain, query, passage, grade = line.split("\t")[:4]
        if passage in passages:
            relevant.setdefault(query, {})[passage] = int(grade)
    questions = {row["_id"]: row["rewrite"] for row in lines("mtrag/queries.jsonl") if row["_id"] in relevant}
    return DataSet("mtrag", "R@5", passages, questions, relevant)


def xquad(language: str) -> DataSet:
    """Return one language of XQuAD: the paragraph with the answer should be found first."""
    passages = {row["_id"]: row["text"] for row in lines(f"xquad/corpus_{language}.jsonl")}
    rows = list(lines(f"xquad/queries_{language}.jsonl"))
    questions = {row["_id"]: row["text"] for row in rows}
    return DataSet(
        f"xquad {language}", "hit@1", passages, questions, {row["_id"]: {row["gold_doc"]: 1} for row in rows}
    )


def lines(path: str) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in (DATA / path).read_text(encoding="utf-8").split("\n") if line]


Hits = dict[str, list[hybrid.Hit]]


def search_by_keywords(data: DataSet) -> Hits:
    """Return the hits of the product's own keyword search, by passage index."""
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        documents, store = DocumentStore(database, "here"), ChunkStore(database)
        document, _ = documents.add(NewDocument("bench", "text/plain", 1, "bench", "bench"))
        documents.take(document.id)
        texts = list(data.passages.values())
        pieces = [Chunk(place, 0, 0, text) for place, text in enumerate(texts)]
        store.keep_text(document.id, ExtractedText("", "text/plain"), *index_terms("", pieces))
        index = KeywordSearch(KeywordIndex(database))
        languages = index.store.state().languages
        hits = {
            query: [(chunk_id - 1, value) for chunk_id, value in index.search(query_terms(text, languages), CANDIDATES)]
            for query, text in data.questions.items()
        }
        database.close()
    return hits


def search_by_vectors(data: DataSet, rows: Vectors, embedder: Embedder) -> Hits:
    """Return the hits of an exact search."""
    hits: Hits = {}
    embed_questions = getattr(embedder, "embed_questions", embedder.embed)
    for query, vector in zip(data.questions, embed_questions(list(data.questions.values())), strict=True):
        cosines = rows @ vector
        nearest = np.argsort(-cosines, kind="stable")[:CANDIDATES]
        hits[query] = [(int(place), float(cosines[place])) for place in nearest]
    return hits


def fused(keyword_hits: Hits, vector_hits: Hits, vector_weight: float) -> Hits:
    """Return the hits of both, fused as in the product, with the same weight for every language."""
    return {query: hybrid.fuse(keyword_hits[query], vector_hits[query], vector_weight) for query in vector_hits}


def score(data: DataSet, hits: Hits) -> float:
    """Return the mean of the data set's measure over its questions."""
    names = list(data.passages)
    measures = {"nDCG@10": ndcg_at_10, "R@5": recall_at_5, "hit@1": hit_at_1}
    measure = measures[data.measure]
    values = [measure([names[place] for place, _ in hits[q]], data.relevant[q]) for q in data.questions]
    return sum(values) / len(values)
