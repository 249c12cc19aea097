"""The text of documents, cut into chunks: the truth behind keyword and vector search; and the search for words."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, Select, bindparam, delete, func, insert, select, text, tuple_, union_all, update

from rag_assistant.records import Chunk, KnownEmbedder, Passage, Scope
from rag_assistant.records.documents import ExtractedText, dated
from rag_assistant.storage import ownership
from rag_assistant.storage.database import Store, person_of
from rag_assistant.storage.documents.embeddings import count_dropped, serving_model
from rag_assistant.storage.documents.scope import ChunksInScope, in_scope
from rag_assistant.storage.full_text import CHUNK_WORDS
from rag_assistant.storage.tables import chunks, document_texts, documents, word_changes

# One index lookup per language, however many chunks there are.
STATE = text(
    "WITH RECURSIVE found(language) AS (SELECT min(language) FROM chunks UNION ALL "
    "SELECT (SELECT min(language) FROM chunks WHERE language > found.language) FROM found "
    "WHERE found.language IS NOT NULL) SELECT language, (SELECT max(id) FROM chunks), "
    "(SELECT coalesce(max(id), 0) FROM word_changes) FROM found WHERE language IS NOT NULL"
)
# An in-memory index that is behind by more changes reads all words again.
MAX_CHANGES_KEPT = 10_000


class KeywordState(Struct, frozen=True):
    """What keyword search needs to know of the library: the languages of its chunks, and its latest state.

    The languages include ``""`` if that of some chunks is unknown. ``change`` moves with the words in SQLite;
    PostgreSQL, which searches them itself, records none.
    """

    languages: tuple[str, ...] = ()
    last_chunk: int = 0
    change: int | None = None


class KeywordIndex(Store):
    """The words of chunks. PostgreSQL searches them here; on SQLite, an in-memory index does."""

    def state(self) -> KeywordState:
        with self._database.read() as connection:
            return _keyword_state(connection)

    def unknown(self, words: Sequence[str], within: ChunksInScope | None = None) -> set[str]:
        """Return which of the words no chunk contains, on PostgreSQL."""
        if within is not None:
            return {word for word in words if not self.search([word], 1, within)}
        with self._database.read() as connection:
            return {word for word, rows in CHUNK_WORDS.counted(connection, words, 0)[0].items() if not rows}

    def search(self, words: Sequence[str], limit: int, within: ChunksInScope | None = None) -> list[tuple[int, float]]:
        """Return up to ``limit`` chunk ids and scores for any of ``words``, all or ``within``. PostgreSQL only."""
        only = within.holds(CHUNK_WORDS.key) if within else None
        with self._database.read() as connection:
            return CHUNK_WORDS.ranked_words.best(connection, words, limit, only)

    def changes_after(self, change: int) -> list[tuple[int, int, int]] | None:
        """Return the changes after one: number, first and last chunk. ``None`` if some are no longer recorded."""
        rows = self._rows(select(word_changes).where(word_changes.c.id > change).order_by(word_changes.c.id))
        changes = [(row["id"], row["first_chunk"], row["last_chunk"]) for row in rows]
        return changes if not changes or changes[0][0] == change + 1 else None

    def words_between(self, first: int, last: int, limit: int) -> list[tuple[int, str]]:
        """Return the words of up to ``limit`` chunks with an id from ``first`` to ``last``, by id."""
        words, key = CHUNK_WORDS.columns(self._database)
        query = select(key, words.c.words).where(key.between(first, last)).order_by(key).limit(limit)
        return list(self._pairs(query).items())


def index_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
    """Index the words of chunks, given as (id, words)."""
    CHUNK_WORDS.insert(connection, rows)
    if rows:
        ids = [chunk_id for chunk_id, _ in rows]
        _note_change(connection, min(ids), max(ids))


def _keyword_state(connection: Connection) -> KeywordState:
    rows = connection.execute(STATE).all()
    if not rows:
        return KeywordState()
    is_sqlite = connection.dialect.name == "sqlite"
    return KeywordState(tuple(row[0] for row in rows), rows[0][1], rows[0][2] if is_sqlite else None)


def drop_words(connection: Connection, ids: Select[Any]) -> None:
    """Remove the chunks that a query names from keyword search."""
    own = ids.subquery().c.id
    first, last = connection.execute(select(func.min(own), func.max(own))).one()
    if first is not None:
        CHUNK_WORDS.drop(connection, ids)
        _note_change(connection, first, last)


def _note_change(connection: Connection, first: int, last: int) -> None:
    if connection.dialect.name == "sqlite":
        note = insert(word_changes).values(first_chunk=first, last_chunk=last).returning(word_changes.c.id)
        forgotten = connection.execute(note).scalar_one() - MAX_CHANGES_KEPT
        connection.execute(delete(word_changes).where(word_changes.c.id <= forgotten))


# Two chunks with at most this many characters between them are adjacent: the splitter leaves white space out.
MAX_GAP_CHARS = 12
# The position of chunks that the next reading replaces: no reading produces it.
NOWHERE = -1

# Used by every question, so built once: building a statement costs more than running it.
_PASSAGES = (
    select(
        chunks.c.id.label("chunk_id"),
        *(chunks.c[name] for name in ("document_id", "start", "end", "text", "page", "section", "gap")),
        *(documents.c.name.label("document"), documents.c.date, documents.c.date_from),
        (~ownership.OF_A_PERSON).label("of_guide"),
    )
    .join_from(chunks, documents, chunks.c.document_id == documents.c.id)
    .where(
        documents.c.replaces.is_(None), chunks.c.id.in_(bindparam("ids", expanding=True)), ownership.IN_READABLE_LIBRARY
    )
)
_CHUNK = tuple(chunks.c[name] for name in Chunk.__struct_fields__)
_HIDDEN = union_all(
    select(documents.c.id).where(documents.c.replaces.is_not(None)),
    select(documents.c.id).where(
        documents.c.deleted_at.is_not(None), ownership.TRASHED_CHUNKS <= ownership.MAX_CHUNKS_PASSED_OVER
    ),
)
_PENDING = select(chunks.c.id).where(chunks.c.document_id.in_(_HIDDEN))


class ChunkStore(Store):
    """Stores the text of documents, and returns what a search found."""

    def keep_text(self, document_id: int, extracted: ExtractedText, pieces: Sequence[Chunk], words: list[str]) -> bool:
        """Store a document's text, dates, chunks and words, which makes it searchable by keyword.

        ``words[i]`` is what keyword search indexes of ``pieces[i]``. Chunks of an earlier attempt are replaced, unless
        they are the same: then their embeddings stay. A document without chunks waits for text recognition. Return
        False if the document was deleted or cancelled meanwhile.
        """
        with self._database.write(adds=True) as connection:
            own = select(documents.c.state, documents.c.dates).where(documents.c.id == document_id).with_for_update()
            row = connection.execute(own).first()
            if row is None or row.state not in ("reading", "recognising"):
                return False
            stored = select(*_CHUNK).where(chunks.c.document_id == document_id).order_by(chunks.c.position)
            same = bool(pieces) and [Chunk(*row) for row in connection.execute(stored)] == list(pieces)
            values: dict[str, Any] = {
                "state": "embedding" if pieces else "recognising",
                "media_type": extracted.media_type,
                "reason": extracted.warning,
                "page_starts": list(extracted.page_starts),
                "figures": list(extracted.figures),
                "chunks": len(pieces),
                **dated(row.dates, extracted.dates),
            }
            if not same:
                drop_chunks(connection, document_id)
                values["embedded"] = 0
            connection.execute(update(documents).where(documents.c.id == document_id).values(values))
            if not same:
                _insert(connection, document_id, extracted, pieces, words)
            return True

    def distrust(self, document_id: int) -> None:
        """Mark a document's chunks as wrong; until it is read again they stay, as damaged text is better than none."""
        self._commit(update(chunks).where(chunks.c.document_id == document_id).values(position=NOWHERE))

    def passages(self, scores: Mapping[int, float]) -> list[Passage]:
        """Return the searchable chunks among some ids with scores, in order: not deleted, nor of pending versions."""
        with self._database.read() as connection:
            these = {"ids": list(scores), "person": person_of(connection)}
            rows = connection.execute(_PASSAGES, these).mappings()
            by_id = {row["chunk_id"]: Passage(score=scores[row["chunk_id"]], **row) for row in rows}
        return [by_id[chunk_id] for chunk_id in scores if chunk_id in by_id]

    def texts_at(self, places: Collection[tuple[int, int]], scope: Scope) -> dict[tuple[int, int], str]:
        """Return the text of the searchable chunks of a scope at some places, by document and start."""
        query = (
            select(chunks.c.document_id, chunks.c.start, chunks.c.text)
            .join_from(chunks, documents, chunks.c.document_id == documents.c.id)
            .where(tuple_(chunks.c.document_id, chunks.c.start).in_(places), documents.c.replaces.is_(None))
        )
        own = self._database
        is_searched = in_scope(own, documents.c.id, scope) if scope else ownership.in_readable_library(own)
        return {(row["document_id"], row["start"]): row["text"] for row in self._rows(query.where(is_searched))}

    def beginnings(self, document_ids: Sequence[int], chars: int) -> dict[int, str]:
        """Return the first characters of the text of each document that has one, by id."""
        number = document_texts.c.document_id
        own = number.in_(document_ids), ownership.readable(self._database, number)
        return self._pairs(select(number, func.substr(document_texts.c.text, 1, chars)).where(*own))

    def first_of_documents(self) -> dict[int, int]:
        """Return the id of each readable document's first chunk, which changes with its text."""
        own = ownership.readable(self._database, chunks.c.document_id)
        return self._pairs(select(chunks.c.document_id, func.min(chunks.c.id)).where(own).group_by("document_id"))

    def sections_of(self, document_ids: Collection[int]) -> dict[int, tuple[int, int, int]]:
        """Return all chunks of some documents in order, by id: document, start and end."""
        query = select(chunks.c.id, chunks.c.document_id, chunks.c.start, chunks.c.end)
        own = chunks.c.document_id.in_(document_ids), ownership.readable(self._database, chunks.c.document_id)
        rows = self._rows(query.where(*own).order_by(chunks.c.document_id, chunks.c.start))
        return {row["id"]: (row["document_id"], row["start"], row["end"]) for row in rows}

    def section_at(self, document_id: int, position: int) -> str | None:
        """Return the path of headings at a position in a document's text, ``None`` if there is none."""
        before = chunks.c.document_id == document_id, chunks.c.start <= position
        nearest = select(chunks.c.section).where(*before, ownership.readable(self._database, chunks.c.document_id))
        return next(iter(self._values(nearest.order_by(chunks.c.start.desc()).limit(1))), None)

    def within(self, scope: Scope) -> ChunksInScope | None:
        """Return the readable chunks of a scope; ``None`` if that is every chunk."""
        with self._database.read() as connection:
            return self._within(connection, scope)

    def library(self, scope: Scope) -> tuple[ChunksInScope | None, set[int], KeywordState, KnownEmbedder | None]:
        """Return what a question has to know, as of one moment: ``within``, what is pending, the state of the words,
        and the model whose vectors are searched. Pending chunks must not be found: of newer versions, and of a small
        trash.
        """
        with self._database.read() as connection:
            pending = set(connection.execute(_PENDING).scalars())
            within, words = self._within(connection, scope), _keyword_state(connection)
            return within, pending, words, serving_model(connection)

    def _within(self, connection: Connection, scope: Scope) -> ChunksInScope | None:
        return None if not scope and ownership.reads_everything(connection) else ChunksInScope(self._database, scope)


def drop_chunks(connection: Connection, document_id: int) -> None:
    """Delete a document's text, chunks, words and vectors."""
    own = select(chunks.c.id).where(chunks.c.document_id == document_id)
    count_dropped(connection, own)
    drop_words(connection, own)
    connection.execute(delete(document_texts).where(document_texts.c.document_id == document_id))
    connection.execute(delete(chunks).where(chunks.c.document_id == document_id))


def _insert(
    connection: Connection, document_id: int, extracted: ExtractedText, pieces: Sequence[Chunk], words: list[str]
) -> None:
    own = {"text": extracted.text, "markdown": extracted.markdown, "warning": extracted.warning}
    connection.execute(insert(document_texts).values(document_id=document_id, **own))
    if pieces:
        rows = []
        for before, piece in zip([None, *pieces], pieces, strict=False):
            # The text between a chunk and the one before it, if the two are adjacent on a page.
            touches = before and before.page == piece.page and 0 <= piece.start - before.end <= MAX_GAP_CHARS
            gap = extracted.text[before.end : piece.start] if before and touches else None
            rows.append(asdict(piece) | {"document_id": document_id, "gap": gap})
        inserted = insert(chunks).returning(chunks.c.id, sort_by_parameter_order=True)
        index_words(connection, list(zip(connection.execute(inserted, rows).scalars(), words, strict=True)))
