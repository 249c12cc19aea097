"""(d) Ingest: chunks per second from file to ready compared with the bare embedder, cores
used, and keyword indexing.
"""

import io
import logging
import tempfile
import time
from pathlib import Path

from bench.aims import Figure, Figures
from bench.searches import fill
from bench.stage import open_database, wait_until_ready
from bench.words import text_of
from rag_assistant.documents.embedding import CHUNKS_AT_ONCE
from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.services import Services
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.web import create_app

DOCUMENTS = 8
WORDS_OF_A_CHUNK = 120
CHUNKS_OF_A_DOCUMENT = 25
# How much keyword search finds.
INDEXED = 5_000


def main() -> Figures:
    """Print the speeds, with the cores used."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        found_by_words = chunks_indexed_a_second(Path(folder) / "words")
        print(f"Words find {found_by_words:,.0f} chunks a second.\n", flush=True)
        app = create_app(
            {"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
        )
        services: Services = app.extensions["assistant"]
        services.prepare()
        services.processing.start()
        embedder = services.embedders.configured()
        wait_until_ready(services)
        print("| | chunks a second | CPU ms per chunk | cores |\n|---|---|---|---|")
        a_second = add_documents(services)
        texts = chunk_texts(services)
        began, cpu = time.perf_counter(), time.process_time()
        for start in range(0, len(texts), CHUNKS_AT_ONCE):
            embedder.embed(texts[start : start + CHUNKS_AT_ONCE])
        report("bare embedder", len(texts), time.perf_counter() - began, time.process_time() - cpu)
        services.close()
    return {"ingest": Figure((a_second,))}


def add_documents(services: Services) -> float:
    """Add documents and wait until they are ready; return the chunks per second of CPU."""
    chunks = DOCUMENTS * CHUNKS_OF_A_DOCUMENT
    texts = [text_of(WORDS_OF_A_CHUNK, seed) for seed in range(chunks)]
    for first in range(0, chunks, CHUNKS_OF_A_DOCUMENT):
        text = "\n\n".join(texts[first : first + CHUNKS_OF_A_DOCUMENT])
        services.library.accept(io.BytesIO(text.encode()), f"{first}.txt")
    began, cpu = time.perf_counter(), time.process_time()
    wait_until_ready(services)
    return report("file to ready", chunks, time.perf_counter() - began, time.process_time() - cpu)


def report(what: str, chunks: int, seconds: float, cpu_seconds: float) -> float:
    """Print one row, and return the chunks per second of CPU."""
    print(
        f"| {what} | {chunks / seconds:.1f} | {cpu_seconds / chunks * 1000:.1f} | {cpu_seconds / seconds:.2f} |",
        flush=True,
    )
    return chunks / cpu_seconds


def chunks_indexed_a_second(folder: Path) -> float:
    """Return how many chunks are stemmed, stored and indexed per second for keyword search."""
    database = open_database(folder)
    texts = [text_of(WORDS_OF_A_CHUNK, seed) for seed in range(INDEXED)]
    began = time.perf_counter()
    fill(DocumentStore(database, "bench"), ChunkStore(database), texts, INDEXED)
    seconds = time.perf_counter() - began
    database.close()
    return INDEXED / seconds


def chunk_texts(services: Services) -> list[str]:
    """Return the texts of the chunks just embedded."""
    texts: list[str] = []
    for document in services.documents.page(2 * DOCUMENTS):
        chunks = services.embeddings.without_embedding(document.id, "no such embedder")
        texts += [indexed_text(one.document, one.section, one.text) for one in chunks]
    return texts
