"""Documents with their text, chunks and embeddings: the truth from which every index can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from rag_assistant.errors import DocumentNotFound
from rag_assistant.records import Chunk, Document, ExtractedText, Passage
from rag_assistant.storage.database import Database
from rag_assistant.storage.keywords import CHUNK_WORDS
from rag_assistant.storage.tables import chunks, document_texts, documents, embeddings, library_state, now


class DocumentStore:
    """Keeps documents. What is deleted here is gone from every answer at once, whatever an index still holds.

    ``owner`` names this installation: it works on the files that lie in its own folder and on no others.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    def add(self, name: str, media_type: str, size_bytes: int, sha256: str, file: str) -> tuple[Document, bool]:
        """Keep a new document as ``queued``; return it and True, or the one with the same content and False.

        A failed document with the same content is queued again.
        """
        with self._database.write() as connection:
            known = connection.execute(select(documents).where(documents.c.sha256 == sha256)).mappings().first()
            if known is not None:
                if known["state"] == "failed":
                    _set(connection, known["id"], state="queued", reason=None)
                return _load(connection, known["id"]), False
            document_id = connection.execute(
                insert(documents)
                .values(
                    name=name,
                    media_type=media_type,
                    size_bytes=size_bytes,
                    sha256=sha256,
                    owner=self._owner,
                    file=file,
                    state="queued",
                    chunks=0,
                    embedded=0,
                    created_at=now(),
                )
                .returning(documents.c.id)
            ).scalar_one()
            return _load(connection, document_id), True

    def get(self, document_id: int) -> Document:
        """Return one document. Raises DocumentNotFound."""
        with self._database.read() as connection:
            return _load(connection, document_id)

    def page(self, limit: int, before_id: int | None = None) -> list[Document]:
        """Return up to ``limit`` documents with an id below ``before_id``, the newest first."""
        query = select(documents).order_by(documents.c.id.desc()).limit(limit)
        if before_id is not None:
            query = query.where(documents.c.id < before_id)
        with self._database.read() as connection:
            return [_as_document(row) for row in connection.execute(query).mappings()]

    def find(self, name_contains: str, document_ids: Sequence[int], limit: int) -> tuple[list[Document], int]:
        """Return up to ``limit`` documents whose name contains a text, the newest first, and how many there are.

        Upper and lower case are the same (in ASCII). With ``document_ids``, only among these.
        """
        conditions = [documents.c.name.icontains(name_contains, autoescape=True)] if name_contains else []
        if document_ids:
            conditions.append(documents.c.id.in_(document_ids))
        query = select(documents).where(*conditions).order_by(documents.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(documents).where(*conditions)).scalar_one()
            return [_as_document(row) for row in connection.execute(query).mappings()], total

    def missing(self, document_ids: Iterable[int]) -> list[int]:
        """Return those of the ids that name no document."""
        wanted = list(document_ids)
        if not wanted:
            return []
        with self._database.read() as connection:
            found = set(connection.execute(select(documents.c.id).where(documents.c.id.in_(wanted))).scalars())
        return [document_id for document_id in wanted if document_id not in found]

    def file_of(self, document_id: int) -> str:
        """Return the name of the uploaded file. Raises DocumentNotFound."""
        with self._database.read() as connection:
            return str(_row(connection, document_id)["file"])

    def known_files(self) -> set[str]:
        """Return the names of all uploaded files that belong to a document."""
        with self._database.read() as connection:
            return set(connection.execute(select(documents.c.file)).scalars())

    def text(self, document_id: int) -> ExtractedText:
        """Return a document's text, empty while it is not read. Raises DocumentNotFound."""
        with self._database.read() as connection:
            row = _row(connection, document_id)
            found = connection.execute(
                select(document_texts.c.text).where(document_texts.c.document_id == document_id)
            ).scalar()
            return ExtractedText(found or "", row["media_type"], tuple(row["page_starts"] or ()))

    def take_queued(self) -> Document | None:
        """Return the oldest queued document, now in the state ``reading``; ``None`` if nothing waits."""
        with self._database.write() as connection:
            query = (
                select(documents.c.id)
                .where(documents.c.state == "queued", documents.c.owner == self._owner)
                .order_by(documents.c.id)
                .limit(1)
            )
            document_id = connection.execute(query.with_for_update(skip_locked=True)).scalar()
            if document_id is None:
                return None
            _set(connection, document_id, state="reading", reason=None)
            return _load(connection, document_id)

    def requeue_unfinished(self) -> int:
        """Queue what a crash left half done once more, and return how many documents that are."""
        with self._database.write() as connection:
            changed = connection.execute(
                update(documents)
                .where(documents.c.state.in_(("reading", "embedding")), documents.c.owner == self._owner)
                .values(state="queued")
            )
            return int(changed.rowcount)

    def keep_text(self, document_id: int, extracted: ExtractedText, pieces: Sequence[Chunk], words: list[str]) -> bool:
        """Keep a document's text, its chunks and their words: from now on it is found by keywords.

        ``words[i]`` is what keyword search reads of ``pieces[i]``. Chunks of an earlier attempt are replaced, unless
        they are the same: then their embeddings stay. Return False if the document was deleted meanwhile.
        """
        with self._database.write() as connection:
            if not _exists(connection, document_id):
                return False
            _set(
                connection,
                document_id,
                state="embedding",
                media_type=extracted.media_type,
                page_starts=list(extracted.page_starts),
                chunks=len(pieces),
            )
            if _chunks_are(connection, document_id, pieces):
                return True
            _drop_chunks(connection, document_id)
            connection.execute(insert(document_texts).values(document_id=document_id, text=extracted.text))
            if pieces:
                rows = [_chunk_row(document_id, piece) for piece in pieces]
                ids = list(
                    connection.execute(
                        insert(chunks).returning(chunks.c.id, sort_by_parameter_order=True), rows
                    ).scalars()
                )
                CHUNK_WORDS.insert(connection, list(zip(ids, words, strict=True)))
            _set(connection, document_id, embedded=0)
            return True

    def without_embedding(self, document_id: int, embedder: str) -> list[tuple[int, str]]:
        """Return id and text of the document's chunks that ``embedder`` has not embedded yet, in their order."""
        with self._database.read() as connection:
            done = select(embeddings.c.chunk_id).where(embeddings.c.embedder == embedder)
            rows = connection.execute(
                select(chunks.c.id, chunks.c.text)
                .where(chunks.c.document_id == document_id, chunks.c.id.not_in(done))
                .order_by(chunks.c.position)
            )
            return [(row.id, row.text) for row in rows]

    def keep_embeddings(self, document_id: int, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> bool:
        """Keep the vectors of some chunks of a document. Return False if the document was deleted meanwhile."""
        with self._database.write() as connection:
            if not _exists(connection, document_id):
                return False
            connection.execute(
                insert(embeddings),
                [{"chunk_id": chunk_id, "embedder": embedder, "vector": vector} for chunk_id, vector in vectors],
            )
            _set(connection, document_id, embedded=documents.c.embedded + len(vectors))
            _moved(connection, "additions", len(vectors))
            return True

    def finish(self, document_id: int) -> None:
        """Mark a document as ready. It must have an embedding for every chunk."""
        with self._database.write() as connection:
            _set(connection, document_id, state="ready")

    def fail(self, document_id: int, reason: str) -> None:
        """Mark a document as failed, with the reason that a person reads."""
        with self._database.write() as connection:
            _set(connection, document_id, state="failed", reason=reason)

    def delete(self, document_id: int) -> str:
        """Delete a document with all that was made of it, and return the name of its file. Raises DocumentNotFound."""
        with self._database.write() as connection:
            file = str(_row(connection, document_id)["file"])
            _drop_chunks(connection, document_id)
            connection.execute(delete(documents).where(documents.c.id == document_id))
            return file

    def passages(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return the chunks that still exist, by id, without a score: what was deleted is not among them."""
        with self._database.read() as connection:
            rows = connection.execute(
                select(chunks, documents.c.name)
                .join_from(chunks, documents, chunks.c.document_id == documents.c.id)
                .where(chunks.c.id.in_(chunk_ids))
            )
            return {
                row.id: Passage(
                    chunk_id=row.id,
                    document_id=row.document_id,
                    document=row.name,
                    start=row.start,
                    end=row.end,
                    text=row.text,
                    page=row.page,
                    score=0.0,
                )
                for row in rows
            }

    def chunk_ids_of(self, document_ids: Sequence[int]) -> set[int]:
        """Return the ids of all chunks of some documents."""
        with self._database.read() as connection:
            return set(connection.execute(select(chunks.c.id).where(chunks.c.document_id.in_(document_ids))).scalars())

    def library_version(self) -> tuple[int, int]:
        """Return two numbers that move with every addition to, and every deletion from, the embedded chunks."""
        with self._database.read() as connection:
            row = connection.execute(select(library_state.c.additions, library_state.c.deletions)).one()
            return row.additions, row.deletions

    def vectors_after(self, embedder: str, chunk_id: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to ``limit`` embedded chunks with an id above ``chunk_id``, in the order of their ids."""
        with self._database.read() as connection:
            rows = connection.execute(
                select(embeddings.c.chunk_id, embeddings.c.vector)
                .where(embeddings.c.embedder == embedder, embeddings.c.chunk_id > chunk_id)
                .order_by(embeddings.c.chunk_id)
                .limit(limit)
            )
            return [(row.chunk_id, row.vector) for row in rows]


def _row(connection: Connection, document_id: int) -> RowMapping:
    row = connection.execute(select(documents).where(documents.c.id == document_id)).mappings().first()
    if row is None:
        raise DocumentNotFound(document_id)
    return row


def _load(connection: Connection, document_id: int) -> Document:
    return _as_document(_row(connection, document_id))


def _exists(connection: Connection, document_id: int) -> bool:
    return connection.execute(select(documents.c.id).where(documents.c.id == document_id)).first() is not None


def _set(connection: Connection, document_id: int, **values: Any) -> None:
    connection.execute(update(documents).where(documents.c.id == document_id).values(values))


def _moved(connection: Connection, column: str, count: int) -> None:
    connection.execute(update(library_state).values({column: library_state.c[column] + count}))


def _chunk_row(document_id: int, piece: Chunk) -> dict[str, Any]:
    return {"document_id": document_id} | {
        name: getattr(piece, name) for name in ("position", "start", "end", "page", "text")
    }


def _chunks_are(connection: Connection, document_id: int, pieces: Sequence[Chunk]) -> bool:
    rows = connection.execute(
        select(chunks.c.position, chunks.c.start, chunks.c.end, chunks.c.text, chunks.c.page)
        .where(chunks.c.document_id == document_id)
        .order_by(chunks.c.position)
    )
    return bool(pieces) and [Chunk(*row) for row in rows] == list(pieces)


def _drop_chunks(connection: Connection, document_id: int) -> None:
    """Delete a document's text, chunks, words and embeddings."""
    own = select(chunks.c.id).where(chunks.c.document_id == document_id)
    embedded = connection.execute(select(func.count()).where(embeddings.c.chunk_id.in_(own))).scalar() or 0
    CHUNK_WORDS.drop(connection, own)
    connection.execute(delete(document_texts).where(document_texts.c.document_id == document_id))
    connection.execute(delete(chunks).where(chunks.c.document_id == document_id))
    if embedded:
        _moved(connection, "deletions", embedded)


def _as_document(row: RowMapping) -> Document:
    return Document(
        id=row["id"],
        name=row["name"],
        media_type=row["media_type"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        state=row["state"],
        reason=row["reason"],
        chunks=row["chunks"],
        embedded=row["embedded"],
        pages=len(row["page_starts"]) if row["page_starts"] else None,
        created_at=row["created_at"],
    )
