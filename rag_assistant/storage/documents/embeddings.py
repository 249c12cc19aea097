"""The vectors of the chunks, for each embedding model in use or being prepared."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import KnownEmbedder, UnembeddedChunk
from rag_assistant.storage.database import Store, record_of
from rag_assistant.storage.documents.scope import ChunksInScope
from rag_assistant.storage.documents.vector_table import is_there, keep_vectors
from rag_assistant.storage.tables import chunks, documents, embedders, embeddings

_SERVING = sa.select(embedders).where(embedders.c.active)


class EmbeddingStore(Store):
    """Stores embedding models and their vectors, from which every index can be rebuilt."""

    def models(self) -> list[KnownEmbedder]:
        """Return all embedding models with stored vectors."""
        return [_as_known(row) for row in self._rows(sa.select(embedders))]

    def serving(self) -> KnownEmbedder | None:
        """Return the model whose vectors are searched; ``None`` if there is none yet."""
        with self._database.read() as connection:
            return serving_model(connection)

    def keep(self, key: str, source: dict[str, Any], dimension: int, probe: bytes | None) -> None:
        """Store a model, or update its source; the first one becomes active."""
        with suppress(IntegrityError), self._database.write() as connection:  # Another server may store it, too.
            values = {"source": source, "dimension": dimension, "probe": probe}
            if connection.execute(sa.update(embedders).where(embedders.c.key == key).values(values)).rowcount:
                return
            first = connection.execute(sa.select(embedders.c.key)).first() is None
            connection.execute(sa.insert(embedders).values(key=key, active=first, additions=0, deletions=0, **values))

    def activate(self, key: str) -> bool:
        """Activate a model if it has a vector for every chunk, except of failed documents; return whether it has."""
        with self._database.write() as connection:
            row = connection.execute(sa.select(embedders.c.key).where(embedders.c.key == key)).first()
            failed = sa.select(documents.c.id).where(documents.c.state == "failed")
            lacking = chunks_without(key).where(chunks.c.document_id.not_in(failed)).limit(1)
            if row is None or connection.execute(lacking).first() is not None:
                return False
            connection.execute(sa.update(embedders).values(active=embedders.c.key == key))
            # The unembedded chunks were counted for another model.
            connection.execute(sa.update(documents).values(embedded=_count_of(key)))
            return True

    def forget(self, key: str) -> None:
        """Delete an inactive model and its vectors."""
        with self._database.write() as connection:
            if connection.execute(sa.delete(embedders).where(embedders.c.key == key, ~embedders.c.active)).rowcount:
                connection.execute(sa.delete(embeddings).where(embeddings.c.embedder == key))

    def version(self, key: str) -> tuple[int, int]:
        """Return two numbers that change with every vector of a model that is stored or deleted."""
        rows = self._rows(sa.select(embedders.c.additions, embedders.c.deletions).where(embedders.c.key == key))
        return (rows[0]["additions"], rows[0]["deletions"]) if rows else (0, 0)

    def without_embedding(self, document_id: int, embedder: str, limit: int | None = None) -> list[UnembeddedChunk]:
        """Return up to ``limit`` chunks of a document without a vector of ``embedder``, in order."""
        lacking = chunks_without(embedder).where(chunks.c.document_id == document_id).order_by(chunks.c.position)
        columns = chunks.c.id.label("chunk_id"), documents.c.name.label("document"), chunks.c.section, chunks.c.text
        query = lacking.with_only_columns(*columns).join(documents, documents.c.id == chunks.c.document_id)
        return self._records(query.limit(limit), UnembeddedChunk)

    def next_without(self, embedder: str, after: int) -> int | None:
        """Return the next finished document after ``after`` with chunks that lack a vector of a model."""
        query = sa.select(documents.c.id).where(documents.c.id > after, *_finished_without(embedder))
        return next(iter(self._values(query.order_by(documents.c.id).limit(1))), None)

    def leave_to_others(self, embedder: str) -> None:
        """Let whoever works on documents embed what lacks a vector of a model."""
        waiting = {"state": "embedding", "worker": None, "attempts": 0}
        self._commit(sa.update(documents).where(*_finished_without(embedder)).values(waiting))

    def progress(self, embedder: str) -> tuple[int, int]:
        """Return how many chunks ``embedder`` has embedded, and how many there are."""
        with self._database.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(chunks)).scalar_one()
            own = sa.select(sa.func.count()).select_from(embeddings).where(embeddings.c.embedder == embedder)
            return connection.execute(own).scalar_one(), total

    def keep_embeddings(self, document_id: int, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> bool:
        """Store vectors for chunks, except those that have one already; return False if the chunks are gone."""
        with self._database.write(adds=True) as connection:
            connection.execute(sa.select(documents.c.id).where(documents.c.id == document_id).with_for_update())
            ids = [chunk_id for chunk_id, _ in vectors]
            here = sa.select(sa.func.count()).where(chunks.c.id.in_(ids), chunks.c.document_id == document_id)
            if connection.execute(here).scalar() != len(ids):
                return False
            same = embeddings.c.chunk_id.in_(ids), embeddings.c.embedder == embedder
            embedded_ids = set(connection.execute(sa.select(embeddings.c.chunk_id).where(*same)).scalars())
            new = [one for one in vectors if one[0] not in embedded_ids]
            if new:
                rows = [{"chunk_id": chunk_id, "embedder": embedder, "vector": vector} for chunk_id, vector in new]
                connection.execute(sa.insert(embeddings), rows)
                # Only now: with the first row it is certain that nobody is creating the table.
                if is_there(connection):
                    keep_vectors(connection, embedder, new)
            unfinished = documents.c.id == document_id, documents.c.state != "ready"
            connection.execute(sa.update(documents).where(*unfinished).values(embedded=_count_of(embedder)))
            own = embedders.c.key == embedder
            connection.execute(sa.update(embedders).where(own).values(additions=embedders.c.additions + len(new)))
            return True

    def vectors_after(self, embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` embedded chunks with an id above ``chunk_id``, by id."""
        later = _vectors_of(embedder).where(embeddings.c.chunk_id > chunk_id)
        return list(self._pairs(later.order_by(embeddings.c.chunk_id).limit(limit)).items())

    def vectors_within(self, embedder: str, within: ChunksInScope) -> list[tuple[int, bytes]]:
        """Return the embedded chunks of a scope."""
        return list(self._pairs(_vectors_of(embedder).where(within.holds(embeddings.c.chunk_id))).items())

    def embedded_ids(self, embedder: str) -> list[int]:
        """Return the ids of all embedded chunks, smallest first."""
        own = sa.select(embeddings.c.chunk_id).where(embeddings.c.embedder == embedder)
        return self._values(own.order_by(embeddings.c.chunk_id))

    def still_embedded(self, embedder: str, chunk_ids: Collection[int]) -> set[int]:
        """Return which of the chunks have a vector."""
        own = embeddings.c.embedder == embedder, embeddings.c.chunk_id.in_(chunk_ids)
        return set(self._values(sa.select(embeddings.c.chunk_id).where(*own)))


def serving_model(connection: sa.Connection) -> KnownEmbedder | None:
    """Return the model whose vectors are searched; ``None`` if there is none yet."""
    return next(map(_as_known, connection.execute(_SERVING).mappings()), None)


def count_dropped(connection: sa.Connection, chunk_ids: sa.Select[Any]) -> None:
    """Count the vectors of chunks that are about to be deleted."""
    lost = (
        sa.select(embeddings.c.embedder, sa.func.count())
        .where(embeddings.c.chunk_id.in_(chunk_ids))
        .group_by(embeddings.c.embedder)
    )
    for key, count in connection.execute(lost):
        own = embedders.c.key == key
        connection.execute(sa.update(embedders).where(own).values(deletions=embedders.c.deletions + count))


def chunks_without(embedder: str) -> sa.Select[Any]:
    """Return the query for the chunks without a vector of a model."""
    has_one = sa.exists().where(embeddings.c.chunk_id == chunks.c.id, embeddings.c.embedder == embedder)
    return sa.select(chunks.c.id, chunks.c.text).where(~has_one)


def _finished_without(embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions that a document is finished, and has chunks without a vector of a model."""
    lacking = chunks_without(embedder).where(chunks.c.document_id == documents.c.id).exists()
    return documents.c.state.in_(("ready", "failed")), lacking


def _vectors_of(embedder: str) -> sa.Select[int, bytes]:
    return sa.select(embeddings.c.chunk_id, embeddings.c.vector).where(embeddings.c.embedder == embedder)


def _count_of(embedder: str) -> sa.ScalarSelect[int]:
    """Return how many chunks of a document a model has embedded."""
    own = chunks.c.document_id == documents.c.id, embeddings.c.embedder == embedder
    embedded = embeddings.join(chunks, chunks.c.id == embeddings.c.chunk_id)
    return sa.select(sa.func.count()).select_from(embedded).where(*own).scalar_subquery()


def _as_known(row: sa.RowMapping) -> KnownEmbedder:
    return record_of({**row, "version": (row["additions"], row["deletions"])}, KnownEmbedder)
