"""A process that is killed at any step of an ingest: the next start goes on, nothing is lost and nothing is doubled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from sqlalchemy import text

from rag_assistant.storage.database import Database, sqlite_url

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = "rag_assistant.storage.documents.documents:DocumentStore"
CHUNKS = "rag_assistant.storage.documents.chunks:ChunkStore"
EMBEDDINGS = "rag_assistant.storage.documents.embeddings:EmbeddingStore"


def long(step: str) -> ParameterSet:
    """Return a step that only the long run takes."""
    return pytest.param(step, marks=pytest.mark.long)


# Before it is accepted and in the midst of its vectors; every step with the marker.
STEPS = [
    "rag_assistant.documents.uploads:Uploads.receive:after:1",
    long(f"{DOCUMENTS}.add:after:1"),
    long("rag_assistant.runtime.job_queue:JobQueue.add:after:2"),
    long(f"{DOCUMENTS}.take:before:1"),
    long(f"{DOCUMENTS}.take:after:1"),
    long("rag_assistant.documents.library:extract:after:1"),
    long("rag_assistant.documents.library:chunk_document:after:1"),
    long(f"{CHUNKS}.keep_text:before:1"),
    long(f"{CHUNKS}.keep_text:after:1"),
    long(f"{EMBEDDINGS}.keep_embeddings:before:1"),
    f"{EMBEDDINGS}.keep_embeddings:after:1",
    long(f"{EMBEDDINGS}.keep_embeddings:after:2"),
    long(f"{DOCUMENTS}.finish:before:1"),
    long(f"{DOCUMENTS}.finish:after:1"),
]
TEXT = "\n\n".join(f"Paragraph {n} about geese. " + "Words and words. " * 45 for n in range(40))


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_ingest_is_taken_up(tmp_path: Path, step: str) -> None:
    (tmp_path / "fact.txt").write_text(TEXT)
    environment = os.environ | {
        "DATA_DIR": str(tmp_path / "data"),
        "SETTINGS_FILE": str(tmp_path / "none.json"),
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }

    def run(*words: str) -> int:
        program = [sys.executable, "-m", "tests.documents.ingest_process", *words]
        return subprocess.run(program, cwd=PROJECT, env=environment, timeout=60, check=False).returncode

    assert run(step, str(tmp_path / "fact.txt")) == -9, "it was killed there"
    # A file whose document was not kept was not accepted: whoever sent it got no answer, and sends it again.
    sent_again = str(tmp_path / "fact.txt") if step.startswith("rag_assistant.documents.uploads") else ""
    assert run("none", sent_again) == 0
    database = Database(sqlite_url(tmp_path / "data"))
    with database.read() as connection:
        ask = connection.exec_driver_sql
        state, chunks, embedded = ask("SELECT state, chunks, embedded FROM documents WHERE name = 'fact.txt'").one()
        assert (state, chunks) == ("ready", embedded)
        own = "(SELECT id FROM chunks WHERE document_id = (SELECT id FROM documents WHERE name = 'fact.txt'))"
        for table, key in (("embeddings", "chunk_id"), ("chunk_words", "rowid"), ("chunks", "id")):
            assert ask(f"SELECT COUNT(*) FROM {table} WHERE {key} IN {own}").scalar() == chunks
        texts = [row.text for row in connection.execute(text(f"SELECT text FROM chunks WHERE id IN {own} ORDER BY id"))]
        assert "".join("".join(texts).split()) == "".join(TEXT.split())
    database.close()
