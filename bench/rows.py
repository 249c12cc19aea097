"""Millions of chunks in PostgreSQL: the cost of a keyword search, a list and a deletion.

The rows have words but no text or vectors, so that ten million are created in minutes. A chunk has thirty words out of
a million, with frequencies as in a language, where the second is half as frequent as the first (Zipf). ``python -m
bench rows`` creates a hundredth, a tenth, and the whole.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from sqlalchemy import insert, text

from deploy.cluster.cluster import free_ports
from deploy.cluster.postgres import Postgres
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import KeywordIndex
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.rows import DocumentLists
from rag_assistant.storage.migrate import migrate
from rag_assistant.storage.tables import documents, now

SIZES = (100_000, 1_000_000, 10_000_000)
CHUNKS_OF_A_DOCUMENT = 100
WORDS_OF_A_CHUNK = 30
# The natural logarithm of a million, the size of the vocabulary.
VOCABULARY = 13.8
WRITERS = 2
TRIES = 40
WORDS_OF_A_QUESTION = 5
CANDIDATES = 100

CHUNKS = (
    'INSERT INTO chunks (id, document_id, position, start, "end", text) '
    "SELECT n, (n - 1) / :each + 1, (n - 1) % :each, 0, 0, '' FROM generate_series(CAST(:first AS int), :last) AS n"
)
# Depending on n makes the words random per row instead of once.
WORDS = (
    "INSERT INTO chunk_words (chunk_id, words) SELECT n, to_tsvector('simple', ("
    "SELECT string_agg('w' || floor(exp(random() * :vocabulary))::int, ' ') FROM generate_series(1, :words) WHERE n > 0"
    ")) FROM generate_series(CAST(:first AS int), :last) AS n"
)
INDEX = "CREATE INDEX ix_chunk_words ON chunk_words USING gin(words)"


def main() -> None:
    """Print the cost of each operation with this many chunks."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = Postgres(Path(folder, "data"), *free_ports(1), careless=True)
        server.start()
        database = Database(server.url)
        try:
            migrate(database)
            print("| chunks | what | CPU ms of PostgreSQL | ms waited |\n|---|---|---|---|")
            made = 0
            for size in SIZES:
                began = time.monotonic()
                grow(database, made, size)
                report(database, made, size, time.monotonic() - began)
                made = size
        finally:
            database.close()
            server.stop()


def grow(database: Database, made: int, size: int) -> None:
    """Add documents, chunks and words until there are ``size`` chunks."""
    first, last = made // CHUNKS_OF_A_DOCUMENT + 1, size // CHUNKS_OF_A_DOCUMENT
    with database.write(forced=False) as connection:
        connection.execute(
            insert(documents),
            [
                {"id": n, "name": f"{n}.txt", "media_type": "text/plain", "size_bytes": 1, "content_key": f"{n}"}
                | {"owner": "bench", "file": f"{n}", "state": "ready", "chunks": CHUNKS_OF_A_DOCUMENT}
                | {"embedded": CHUNKS_OF_A_DOCUMENT, "created_at": now()}
                for n in range(first, last + 1)
            ],
        )
        connection.execute(text(CHUNKS), {"first": made + 1, "last": size, "each": CHUNKS_OF_A_DOCUMENT})
        connection.execute(text("DROP INDEX ix_chunk_words"))
    share = (size - made) // WRITERS

    def write(part: int) -> None:
        given = {"first": made + part * share + 1, "last": made + (part + 1) * share}
        with database.write(forced=False) as connection:
            connection.execute(text(WORDS), given | {"vocabulary": VOCABULARY, "words": WORDS_OF_A_CHUNK})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    with database.write(forced=False) as connection:
        connection.execute(text("SET LOCAL maintenance_work_mem = '1GB'"))
        connection.execute(text(INDEX))
    with database.outside_transactions() as connection:
        connection.execute(text("VACUUM ANALYZE"))


def report(database: Database, made: int, size: int, seconds: float) -> None:
    """Print a row for each operation; deletions are of the newest documents."""
    chance = random.Random(size)
    lists, keywords, store = DocumentLists(database), KeywordIndex(database), DocumentStore(database, "bench")
    count = size // CHUNKS_OF_A_DOCUMENT
    gone = iter(chance.sample(range(made // CHUNKS_OF_A_DOCUMENT + 1, count + 1), TRIES + 1))

    def question() -> list[str]:
        return [f"w{int(10 ** chance.uniform(0, 6))}" for _ in range(WORDS_OF_A_QUESTION)]

    operations: dict[str, Callable[[], object]] = {
        "search by five words": lambda: keywords.search(question(), CANDIDATES),
        "the newest fifty documents": lambda: lists.page(50),
        "documents whose name holds a text": lambda: lists.page(50, sought=f"{chance.randrange(count)}"),
        "how many documents are in each state": lists.totals,
        "whether a document waits": store.any_queued,
        "delete a document of a hundred chunks": lambda: store.delete(next(gone)),
    }
    for what, do in operations.items():
        cpu, waited = measured(database, do)
        print(f"| {size:,} | {what} | {cpu:.1f} | {waited:.1f} |", flush=True)
    with database.read() as connection:
        stored = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    print(f"{stored / 1e9:.1f} GB, {stored / size:.0f} bytes a chunk; made in {seconds:.0f} s", flush=True)


def measured(database: Database, do: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU milliseconds of PostgreSQL for an operation, and the median elapsed milliseconds."""
    do()
    waited, before = [], cpu_seconds(database)
    for _ in range(TRIES):
        began = time.perf_counter()
        do()
        waited.append((time.perf_counter() - began) * 1000)
    return (cpu_seconds(database) - before) * 1000 / TRIES, statistics.median(waited)


def cpu_seconds(database: Database) -> float:
    """Return the CPU time used by the PostgreSQL processes serving this database."""
    with database.read() as connection:
        pids = connection.execute(text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()"))
        times = [psutil.Process(pid).cpu_times() for pid in pids.scalars()]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main()
