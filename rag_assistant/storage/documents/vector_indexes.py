"""pgvector's indexes (HNSW) over the table of vectors: one for each embedding model, built while people search."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, text

from rag_assistant.records import KnownEmbedder
from rag_assistant.storage.database import Store
from rag_assistant.storage.documents.vector_table import quoted

# An index is built in so much memory as it takes, or several times as slowly. PostgreSQL's own limit is 64 MB.
MAX_BUILD_MEMORY_MB = 1024
BYTES_OF_LINKS = 300

INDEXES = text(
    "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE indrelid = to_regclass('chunk_vectors') AND NOT indisprimary"
)
PROGRESS = text(
    "SELECT blocks_done, blocks_total FROM pg_stat_progress_create_index "
    "WHERE relid = to_regclass('chunk_vectors') AND datname = current_database()"
)
# Whoever waited for a lock would be waited for by the build: CREATE INDEX CONCURRENTLY waits for every older statement.
TRY_LOCK = text("SELECT pg_try_advisory_lock(hashtext('rag_assistant vector index'))")
UNLOCK = text("SELECT pg_advisory_unlock(hashtext('rag_assistant vector index'))")


class VectorIndexes(Store):
    """Builds and drops them. Of several processes that build the same one, one does."""

    def ready(self, models: Sequence[KnownEmbedder]) -> set[str]:
        """Return the keys of those models whose index is ready."""
        with self._database.read() as connection:
            built = {row.relname for row in connection.execute(INDEXES) if row.indisvalid}
            return {known.key for known in models if _name_of(known) in built}

    def progress(self) -> float | None:
        """Return how much of an index is built by now, from 0 to 1; ``None`` while none is being built."""
        with self._database.read() as connection:
            row = connection.execute(PROGRESS).first()
            return row.blocks_done / max(1, row.blocks_total) if row is not None else None

    def build(self, known: KnownEmbedder) -> None:
        """Build the index of a model, unless another process builds one; searches and writes go on meanwhile."""
        rows = known.version[0] - known.version[1]
        megabytes = 64 + rows * (2 * known.dimension + BYTES_OF_LINKS) // 2**20
        options = {
            "maintenance_work_mem": f"{min(megabytes, MAX_BUILD_MEMORY_MB)}MB",
            # Several workers share that much memory of the machine, of which a container has 64 MB.
            "max_parallel_maintenance_workers": "0",
            "statement_timeout": "0",
        }
        with self._database.outside_transactions() as connection:
            if not connection.execute(TRY_LOCK).scalar():
                return
            try:
                _drop_unfinished(connection)
                for name, value in options.items():
                    connection.execute(text(f"SET {name} = '{value}'"))
                connection.execute(
                    text(
                        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {_name_of(known)} ON chunk_vectors USING hnsw "
                        f"(CAST(vector AS halfvec({known.dimension})) halfvec_ip_ops) "
                        f"WHERE embedder = {quoted(known.key)}"
                    )
                )
            finally:
                for name in options:
                    connection.execute(text(f"RESET {name}"))
                connection.execute(UNLOCK)

    def drop_others(self, models: Sequence[KnownEmbedder]) -> None:
        """Drop the indexes of models that are forgotten."""
        kept = {_name_of(known) for known in models}
        with self._database.read() as connection:
            others = [row.relname for row in connection.execute(INDEXES) if row.relname not in kept]
        for name in others:
            with self._database.outside_transactions() as connection:
                connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))


def _drop_unfinished(connection: Connection) -> None:
    """Drop what a process that was killed left of an index."""
    for row in connection.execute(INDEXES).all():
        if not row.indisvalid:
            connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {row.relname}"))


def _name_of(known: KnownEmbedder) -> str:
    """Return the name of a model's index: a key is too long for a name, and may hold anything."""
    return f"ix_chunk_vectors_{hashlib.sha256(known.key.encode()).hexdigest()[:16]}"
