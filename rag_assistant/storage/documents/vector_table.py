"""The vectors of the chunks for pgvector: a PostgreSQL table beside ``embeddings``.

It holds the same vectors in half precision, which costs no quality (bench/README.md). Each embedding is stored here in
the same transaction, and deleted with its row there. So every hit exists, and all processes on the database search the
same rows.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.types import UserDefinedType

from rag_assistant.records import KnownEmbedder
from rag_assistant.storage.database import Store
from rag_assistant.storage.documents.scope import ChunksInScope

ROWS_AT_ONCE = 1000
# How many vectors the index examines per question, and at most where a scope leaves few of them.
EF_SEARCH = 200
MAX_EF_SEARCH = 1000
MAX_SCANNED = 20_000
# A scope with fewer chunks is searched without the index: that is exact, and as fast.
MAX_EXACT_CHUNKS = 5_000

# The first version with iterative scans.
MIN_VERSION = (0, 8)
IN_MEMORY = "so each server keeps all vectors in its own memory."
NOT_INSTALLED = (
    f'PostgreSQL has no extension "vector" (pgvector), {IN_MEMORY} Install it where PostgreSQL runs, such as '
    "postgresql-16-pgvector on Debian, and restart."
)
NOT_ALLOWED = (
    f'This user of PostgreSQL may not create the extension "vector" (pgvector), {IN_MEMORY} Run CREATE EXTENSION '
    "vector; in this database as a superuser, and restart."
)
TOO_OLD = (
    f'PostgreSQL has the extension "vector" (pgvector) in version {{version}}, and 0.8.0 is needed, {IN_MEMORY} '
    "Install a newer one, run ALTER EXTENSION vector UPDATE; in this database, and restart."
)


class HalfVector(UserDefinedType[Any]):
    """pgvector's type for 16-bit floats."""

    cache_ok = True

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def get_col_spec(self, **_: Any) -> str:
        return f"halfvec({self.dimension})"


# Not in the metadata of the other tables, which every database has.
vectors = sa.Table(
    "chunk_vectors",
    sa.MetaData(),
    sa.Column("chunk_id", sa.Integer),
    sa.Column("embedder", sa.String),
    sa.Column("vector", sa.String),
)
# MAIN: the numbers are stored in their row, where reading them is cheapest.
CREATE = """
CREATE TABLE chunk_vectors (
    chunk_id INTEGER NOT NULL,
    embedder VARCHAR NOT NULL,
    vector halfvec STORAGE MAIN NOT NULL,
    PRIMARY KEY (chunk_id, embedder),
    FOREIGN KEY (chunk_id, embedder) REFERENCES embeddings (chunk_id, embedder) ON DELETE CASCADE
)
"""
OFFERED = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
INSERT = sa.text(
    "INSERT INTO chunk_vectors (chunk_id, embedder, vector) SELECT id, :embedder, CAST(vector AS halfvec) "
    "FROM unnest(CAST(:ids AS integer[]), CAST(:vectors AS text[])) AS given(id, vector) ON CONFLICT DO NOTHING"
)
# Vectors of the wrong length, which doctor finds, are in no index.
MISSING = (
    "SELECT chunk_id, vector FROM embeddings WHERE embedder = :embedder AND chunk_id > :after "
    "AND length(vector) = 4 * :dimension AND NOT EXISTS (SELECT 1 FROM chunk_vectors AS there "
    "WHERE there.chunk_id = embeddings.chunk_id AND there.embedder = :embedder) ORDER BY chunk_id LIMIT :most"
)


class VectorTable(Store):
    def prepare(self) -> str | None:
        """Create the table if needed; return why that is impossible, or ``None``.

        It waits for whoever is storing embeddings: afterwards everybody sees the table.
        """
        with self._database.read() as connection:
            if is_there(connection):
                return None
            if connection.execute(sa.text(OFFERED)).first() is None:
                return NOT_INSTALLED
        with self._database.one_at_a_time("vectors"), self._database.write() as connection:
            try:
                with connection.begin_nested():
                    connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS vector"))
            except ProgrammingError:
                return NOT_ALLOWED
            version = connection.execute(
                sa.text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            ).scalar()
            if tuple(map(int, str(version).split(".")[:2])) < MIN_VERSION:
                return TOO_OLD.format(version=version)
            connection.execute(sa.text("LOCK TABLE embeddings IN SHARE MODE"))
            if not is_there(connection):
                connection.execute(sa.text(CREATE))
        return None

    def lacks(self, model: KnownEmbedder) -> bool:
        """Return whether any of a model's vectors is missing."""
        with self._database.read() as connection:
            return connection.execute(sa.text(MISSING), _missing_of(model, most=1)).first() is not None

    def fill(self, model: KnownEmbedder) -> int:
        """Add a model's missing vectors, and return their number."""
        added = after = 0
        while True:
            with self._database.write(forced=False) as connection:
                # Nobody deletes them until they are here.
                query = sa.text(f"{MISSING} FOR KEY SHARE OF embeddings")
                rows = connection.execute(query, _missing_of(model, after)).all()
                keep_vectors(connection, model.key, [(row.chunk_id, row.vector) for row in rows])
            if not rows:
                return added
            added, after = added + len(rows), rows[-1].chunk_id

    def nearest(
        self, model: KnownEmbedder, vector: bytes, limit: int, within: ChunksInScope | None, *, indexed: bool
    ) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids with their cosine, nearest first.

        ``indexed`` says whether the index can be used; without it, for a small scope, and where it finds too few, all
        vectors are examined.
        """
        kind = HalfVector(model.dimension)
        distance = sa.cast(vectors.c.vector, kind).op("<#>", return_type=sa.Float())(
            sa.cast(sa.bindparam("vector"), kind)
        )
        # Exactly as in the condition of the index.
        of_model = vectors.c.embedder == sa.literal_column(quoted(model.key))
        with self._database.read() as connection:
            query = sa.select(vectors.c.chunk_id, -distance).where(of_model).limit(limit)
            if within is not None:
                query = query.where(within.holds(vectors.c.chunk_id))
                indexed = indexed and within.has_more_than(MAX_EXACT_CHUNKS, connection)
            rows: list[Any] = []
            given = {"vector": as_text(vector)}
            if indexed:
                connection.execute(_search_options(limit))
                rows = list(connection.execute(query.order_by(distance), given))
            if len(rows) < limit:
                # In another order than the index, so that it isn't used.
                rows = list(connection.execute(query.order_by(distance + 0), given))
        # Later index hits may be nearer than earlier ones.
        return sorted(((row[0], row[1]) for row in rows), key=lambda hit: -hit[1])


def is_there(connection: sa.Connection) -> bool:
    if connection.dialect.name == "sqlite":
        return False
    return connection.execute(sa.text("SELECT to_regclass('chunk_vectors')")).scalar() is not None


def keep_vectors(connection: sa.Connection, embedder: str, rows: Sequence[tuple[int, bytes]]) -> None:
    """Store vectors whose embeddings were stored earlier in the same transaction."""
    if rows:
        ids, texts = [chunk_id for chunk_id, _ in rows], [as_text(vector) for _, vector in rows]
        connection.execute(INSERT, {"embedder": embedder, "ids": ids, "vectors": texts})


def as_text(vector: bytes) -> str:
    """Return a float32 vector as text for pgvector."""
    return msgspec.json.encode(memoryview(vector).cast("f").tolist()).decode()


def quoted(value: str) -> str:
    """Return a text as an SQL literal, for places that take no parameter."""
    return "'" + value.replace("'", "''") + "'"


def _missing_of(model: KnownEmbedder, after: int = 0, most: int = ROWS_AT_ONCE) -> dict[str, Any]:
    return {"embedder": model.key, "dimension": model.dimension, "after": after, "most": most}


def _search_options(limit: int) -> Any:
    """Return the statement that sets how far pgvector searches, until the end of the transaction."""
    options = {
        "hnsw.ef_search": min(max(limit, EF_SEARCH), MAX_EF_SEARCH),
        # In a scope, it continues until there are enough.
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": MAX_SCANNED,
    }
    return sa.select(*(sa.func.set_config(name, str(value), True) for name, value in options.items()))


# With less memory, building an index takes several times as long. PostgreSQL's default is 64 MB.
MAX_BUILD_MEMORY_MB = 1024
BYTES_OF_LINKS = 300

INDEXES = sa.text(
    "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE indrelid = to_regclass('chunk_vectors') AND NOT indisprimary"
)
PROGRESS = sa.text(
    "SELECT blocks_done, blocks_total FROM pg_stat_progress_create_index "
    "WHERE relid = to_regclass('chunk_vectors') AND datname = current_database()"
)
# CREATE INDEX CONCURRENTLY waits for every older statement, so waiting for this lock would deadlock.
TRY_LOCK = sa.text("SELECT pg_try_advisory_lock(hashtext('rag_assistant vector index'))")
UNLOCK = sa.text("SELECT pg_advisory_unlock(hashtext('rag_assistant vector index'))")


class VectorIndexes(Store):
    """Builds and drops the indexes. Only one process builds at a time."""

    def ready(self, models: Sequence[KnownEmbedder]) -> set[str]:
        """Return the keys of those models whose index is ready."""
        with self._database.read() as connection:
            built = {row.relname for row in connection.execute(INDEXES) if row.indisvalid}
            return {model.key for model in models if _name_of(model) in built}

    def progress(self) -> float | None:
        """Return the progress of an index build, from 0 to 1; ``None`` if none is running."""
        with self._database.read() as connection:
            row = connection.execute(PROGRESS).first()
            return row.blocks_done / max(1, row.blocks_total) if row is not None else None

    def build(self, model: KnownEmbedder) -> None:
        """Build the index of a model, unless another process is building; searches and writes continue meanwhile."""
        rows = model.version[0] - model.version[1]
        megabytes = 64 + rows * (2 * model.dimension + BYTES_OF_LINKS) // 2**20
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
                for row in connection.execute(INDEXES).all():
                    if not row.indisvalid:  # Left unfinished by a killed process.
                        connection.execute(sa.text(f"DROP INDEX CONCURRENTLY IF EXISTS {row.relname}"))
                for name, value in options.items():
                    connection.execute(sa.text(f"SET {name} = '{value}'"))
                connection.execute(
                    sa.text(
                        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {_name_of(model)} ON chunk_vectors USING hnsw "
                        f"(CAST(vector AS halfvec({model.dimension})) halfvec_ip_ops) "
                        f"WHERE embedder = {quoted(model.key)}"
                    )
                )
            finally:
                for name in options:
                    connection.execute(sa.text(f"RESET {name}"))
                connection.execute(UNLOCK)

    def drop_others(self, models: Sequence[KnownEmbedder]) -> None:
        names = {_name_of(model) for model in models}
        with self._database.read() as connection:
            others = [row.relname for row in connection.execute(INDEXES) if row.relname not in names]
        for name in others:
            with self._database.outside_transactions() as connection:
                connection.execute(sa.text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))


def _name_of(model: KnownEmbedder) -> str:
    """Return the name of a model's index: a hash, since a key may be too long and contain anything."""
    return f"ix_chunk_vectors_{hashlib.sha256(model.key.encode()).hexdigest()[:16]}"
