"""(d) Ingest: chunks per second from a file to ready, beside the bare embedder on the same chunks."""

from __future__ import annotations

import io
import logging
import tempfile
import time

from bench.words import text_of
from rag_assistant.documents.embedding import CHUNKS_AT_ONCE
from rag_assistant.factory import create_app
from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.storage.documents.rows import UNFINISHED
from rag_assistant.web.services import Services

DOCUMENTS = 8
WORDS = 3_000


def main() -> None:
    """Print both speeds and their ratio."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            {"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
        )
        services: Services = app.extensions["assistant"]
        services.prepare()
        services.library.start()
        embedder = services.embedders.configured().embedder
        wait_until_ready(services)
        for n in range(DOCUMENTS):
            text = "\n\n".join(text_of(120, seed) for seed in range(n * 1000, n * 1000 + WORDS // 120))
            services.library.accept(io.BytesIO(text.encode()), f"{n}.txt")
        began, cpu = time.perf_counter(), time.process_time()
        wait_until_ready(services)
        whole, whole_cpu = time.perf_counter() - began, time.process_time() - cpu
        texts = chunk_texts(services)
        began, cpu = time.perf_counter(), time.process_time()
        for start in range(0, len(texts), CHUNKS_AT_ONCE):
            embedder.embed(texts[start : start + CHUNKS_AT_ONCE])
        bare, bare_cpu = time.perf_counter() - began, time.process_time() - cpu
        services.close()
    count = len(texts)
    print("| | chunks per second | CPU ms per chunk |\n|---|---|---|")
    print(f"| bare embedder | {count / bare:.1f} | {bare_cpu / count * 1000:.1f} |")
    print(f"| file to ready | {count / whole:.1f} | {whole_cpu / count * 1000:.1f} |")
    print(f"\n{count} chunks; ingest runs at {bare / whole:.0%} of the bare embedder.")


def wait_until_ready(services: Services) -> None:
    """Wait until nothing is worked on."""
    while any(document.state in UNFINISHED for document in services.documents.page(200)):
        time.sleep(0.02)


def chunk_texts(services: Services) -> list[str]:
    """Return the texts of the chunks that were just embedded."""
    texts: list[str] = []
    for document in services.documents.page(DOCUMENTS):
        chunks = services.embeddings.without_embedding(document.id, "no such embedder")
        texts += [indexed_text(one.document, one.section, one.text) for one in chunks]
    return texts
