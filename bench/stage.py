"""The environment of benchmarks: a data folder with a library and conversations, a server, a model, CPU time."""

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import psutil
from flask import Flask
from sqlalchemy import insert

from bench.words import guide_text, text_of
from rag_assistant.records import Chunk, NewDocument
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.terms import index_terms
from rag_assistant.services import Services
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.rows import UNFINISHED
from rag_assistant.storage.migrate import migrate
from rag_assistant.storage.tables import conversations, messages, turns
from rag_assistant.web import create_app
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.server_process import ServerProcess, run_command
from tests.testkit.stub_model import StubModel

PROJECT = Path(__file__).resolve().parents[1]
EMBEDDER = "all-MiniLM-L6-v2-int8"


def fill_library(database: Database, chunks: int) -> None:
    """Add a document of ``chunks`` chunks of 130 words with random vectors."""
    documents, store, embeddings = DocumentStore(database, "here"), ChunkStore(database), EmbeddingStore(database)
    document, _ = documents.add(NewDocument("bench.txt", "text/plain", 1, "bench", "bench"))
    documents.take(document.id)
    texts = [text_of(130, seed) for seed in range(chunks)]
    pieces, start = [], 0
    for position, text in enumerate(texts):
        pieces.append(Chunk(position, start, start + len(text), text))
        start += len(text) + 1
    store.keep_text(document.id, ExtractedText("\n".join(texts), "text/plain"), *index_terms("", pieces))
    rows = np.random.default_rng(1).standard_normal((chunks, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = [one.chunk_id for one in embeddings.without_embedding(document.id, EMBEDDER)]
    embeddings.keep(EMBEDDER, {"embedder": "builtin"}, 384, None)
    embeddings.keep_embeddings(document.id, EMBEDDER, [(i, row.tobytes()) for i, row in zip(ids, rows, strict=True)])
    documents.finish(document.id, EMBEDDER)


def add_conversation(database: Database, turn_count: int) -> int:
    """Add a conversation of ``turn_count`` completed turns, and return its id."""
    moment = datetime.now(UTC)
    with database.write() as connection:
        conversation_id: int = connection.execute(
            insert(conversations)
            .values(
                title="bench", created_at=moment, updated_at=moment, overrides={},
                turns=turn_count, visible_turns=turn_count, visible_messages=2 * turn_count,
            )
            .returning(conversations.c.id)
        ).scalar_one()  # fmt: skip
        first = 1 + (connection.exec_driver_sql("SELECT max(id) FROM turns").scalar() or 0)
        for start in range(0, turn_count, 20_000):
            numbers = range(start, min(start + 20_000, turn_count))
            connection.execute(
                insert(turns),
                [
                    {
                        "id": first + n, "conversation_id": conversation_id, "number": n + 1, "status": "completed",
                        "visible": True, "owner": "bench", "request": {}, "message_count": 2, "created_at": moment,
                        "finished_at": moment,
                    }
                    for n in numbers
                ],
            )  # fmt: skip
            connection.execute(
                insert(messages),
                [
                    {
                        "turn_id": first + n,
                        "position": position,
                        "role": role,
                        "content": f"{role} {n}: {guide_text(2 * n + position)}",
                    }
                    for n in numbers
                    for position, role in enumerate(("user", "assistant"))
                ],
            )
    return conversation_id


def open_database(folder: Path) -> Database:
    """Return a migrated database in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(sqlite_url(folder))
    migrate(database)
    return database


@contextlib.contextmanager
def application(folder: Path, stub: StubModel, **environment: str) -> Iterator[tuple[Flask, Services]]:
    """Run the application in this process, without the guide and with an embedder that takes no time."""
    given = {"DATA_DIR": f"{folder}/data", "SETTINGS_FILE": f"{folder}/settings.json", "QUERY_REWRITING": "words"}
    quick = mock.patch.object(minilm, "MiniLM", WordHashEmbedder)
    with quick, mock.patch("rag_assistant.services.GUIDE", folder / "no-guide"):
        app = create_app(given | {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model"} | environment)
        services: Services = app.extensions["assistant"]
        services.start()
        try:
            yield app, services
        finally:
            services.close()


def wait_until_ready(services: Services) -> None:
    """Wait until there is no background work."""
    while any(document.state in UNFINISHED for document in services.documents.page(200)):
        time.sleep(0.02)


@contextlib.contextmanager
def program(*arguments: str) -> Iterator[str]:
    """Run a module that prints its URL and ends with its input; give the URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PROJECT
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


@contextlib.contextmanager
def server(data_dir: Path, **environment: str) -> Iterator[tuple[str, psutil.Process]]:
    """Run ``python app.py`` as a user does; give its URL and its process."""
    # A user's server keeps compiled code for its next start.
    own = {"DATA_DIR": str(data_dir), "PYTHONDONTWRITEBYTECODE": ""}
    running = ServerProcess(data_dir.parent, run_command, **own, **environment)
    running.start("/healthz")
    try:
        assert running.process is not None
        yield running.url, psutil.Process(running.process.pid)
    finally:
        running.terminate()


def wait_for(url: str, seconds: float = 60.0) -> float:
    """Wait until an address returns 200, and return how long it took."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:
            if response.status == 200:
                return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise TimeoutError(url)
        time.sleep(0.01)


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time used by a process and its children."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        times = one.cpu_times()
        total += times.user + times.system
    return total


def read_streams(
    url: str, streams: int, conversation_ids: list[int] | None = None, spread: float = 0.1, seed: int | None = None
) -> list[dict[str, Any]]:
    """Ask ``streams`` questions within ``spread`` seconds from a separate process; return its clients' results.

    The same ``seed`` asks the same questions.
    """
    given = [url, str(streams), str(spread), json.dumps(conversation_ids or []), *([] if seed is None else [str(seed)])]
    output = subprocess.check_output([sys.executable, "-m", "bench.readers", *given], cwd=PROJECT)
    return [json.loads(line) for line in output.splitlines()]


def percentile(values: list[float], share: float) -> float:
    """Return the percentile of some values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
