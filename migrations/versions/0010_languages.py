"""Chunks are indexed by the stems of their language, and marks above and below letters belong to words.

Everything is indexed anew: half a minute of CPU at most for 100,000 chunks.
"""

revision = "0010"
down_revision = "0009"

from collections import Counter
from itertools import groupby

import sqlalchemy as sa
from alembic import op

from rag_assistant.records import Chunk
from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.retrieval.terms import index_terms
from rag_assistant.retrieval.tokenize import MARKS, search_words

MAX_INDEXED_CHARS = 200_000
CHUNK_COLUMNS = ("id", "position", "start", "end", "text", "page", "section")
WITH_MARKS = "unicode61 remove_diacritics 2 categories ''L* N* Co M*''"


def upgrade() -> None:
    op.add_column("chunks", sa.Column("language", sa.String, nullable=False, server_default=""))
    renew_index("chunk_words", WITH_MARKS)
    index_chunks(index_terms)
    op.create_index("ix_chunks_language", "chunks", ["language"])
    keep_turns()
    index_turns_with_marks()


def renew_index(table: str, tokenizer: str) -> None:
    """Make an index of words empty; on SQLite with another tokenizer."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.execute(f"TRUNCATE {table}")
        return
    op.execute(f"DROP TABLE IF EXISTS {table}")
    op.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(words, tokenize = '{tokenizer}')")
    version = connection.connection.dbapi_connection.execute("SELECT sqlite_version()").fetchone()[0]
    if tuple(map(int, version.split("."))) >= (3, 42):
        op.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', 1)")


def index_chunks(terms_of, configuration="simple") -> None:
    """Index the chunks of all documents, a document at a time."""
    connection = op.get_bind()
    documents = sa.table("documents", sa.column("id"), sa.column("name"))
    chunks = sa.table("chunks", *map(sa.column, (*CHUNK_COLUMNS, "document_id", "language")))
    of_document = sa.update(chunks)
    of_chunk = of_document.where(chunks.c.id == sa.bindparam("chunk")).values(language=sa.bindparam("spoken"))
    own = sa.select(*(chunks.c[name] for name in CHUNK_COLUMNS)).order_by(chunks.c.position)
    for document_id, name in connection.execute(sa.select(documents)).all():
        rows = connection.execute(own.where(chunks.c.document_id == document_id)).all()
        pieces, terms = terms_of(name, [Chunk(*row[1:]) for row in rows])
        found = list(zip((row.id for row in rows), terms, strict=True))
        insert_words("chunk_words", "chunk_id", found, configuration)
        languages = {row.id: one.language for row, one in zip(rows, pieces, strict=True)}
        usual = Counter(languages.values()).most_common(1)[0][0] if languages else ""
        connection.execute(of_document.where(chunks.c.document_id == document_id).values(language=usual))
        others = [{"chunk": row_id, "spoken": one} for row_id, one in languages.items() if one != usual]
        if others:
            connection.execute(of_chunk, others)


def insert_words(table: str, key: str, rows, configuration: str) -> None:
    """Put (id, words) into an index."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        insert = sa.text(f"INSERT INTO {table} (rowid, words) VALUES (:id, :words)")
    else:
        insert = sa.text(f"INSERT INTO {table} ({key}, words) VALUES (:id, to_tsvector('{configuration}', :words))")
    if rows:
        connection.execute(insert, [{"id": row_id, "words": words} for row_id, words in rows])


def keep_turns() -> None:
    """Give SQLite's index of turns a tokenizer that knows marks; the words in it stay."""
    if op.get_bind().dialect.name != "sqlite":
        return
    op.execute("ALTER TABLE turn_words RENAME TO turn_words_before")
    renew_index("turn_words", f"porter {WITH_MARKS}")
    op.execute("INSERT INTO turn_words (rowid, words) SELECT rowid, words FROM turn_words_before")
    op.execute("DROP TABLE turn_words_before")


def index_turns_with_marks() -> None:
    """Index those turns anew whose words were cut at the marks of their script."""
    connection = op.get_bind()
    key = "rowid" if connection.dialect.name == "sqlite" else "turn_id"
    marks = frozenset(MARKS)
    said = sa.text(
        f"SELECT messages.turn_id, content FROM messages JOIN turn_words ON turn_words.{key} = messages.turn_id "
        "WHERE role IN ('user', 'assistant') AND content IS NOT NULL ORDER BY messages.turn_id, position"
    )
    rows = []
    for turn_id, messages in groupby(connection.execute(said), key=lambda row: row.turn_id):
        text = "\n".join(row.content for row in messages)[:MAX_INDEXED_CHARS]
        if not text.isascii() and not marks.isdisjoint(text):
            rows.append((turn_id, " ".join(search_words(text))))
    for one, _ in rows:
        connection.execute(sa.text(f"DELETE FROM turn_words WHERE {key} = :turn"), {"turn": one})
    insert_words("turn_words", "turn_id", rows, "english")


def downgrade() -> None:
    op.drop_index("ix_chunks_language", "chunks")
    renew_index("chunk_words", "porter unicode61 remove_diacritics 2")
    index_chunks(as_before, "english")
    op.drop_column("chunks", "language")


def as_before(name, pieces):
    """Return the words of chunks as they stand."""
    return pieces, [" ".join(search_words(indexed_text(name, one.section, one.text))) for one in pieces]
