"""Chunks are indexed by the stems of their language, and marks above and below letters belong to words.

The index of chunks is left empty: documents are indexed in the background, once the server has started.
"""

revision = "0010"
down_revision = "0009"

from itertools import groupby

import sqlalchemy as sa
from alembic import op

from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.retrieval.tokenize import marks, search_words

MAX_INDEXED_CHARS = 200_000
WITH_MARKS = "unicode61 remove_diacritics 2 categories ''L* N* Co M*''"


def upgrade() -> None:
    op.add_column("chunks", sa.Column("language", sa.String, nullable=False, server_default=""))
    renew_index("chunk_words", WITH_MARKS)
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


def index_chunks_as_before() -> None:
    """Index the words of the chunks of all documents as they stand, a document at a time."""
    connection = op.get_bind()
    documents = sa.table("documents", sa.column("id"), sa.column("name"))
    chunks = sa.table("chunks", *map(sa.column, ("id", "text", "section", "document_id")))
    for document_id, name in connection.execute(sa.select(documents)).all():
        rows = connection.execute(sa.select(chunks).where(chunks.c.document_id == document_id)).all()
        words = [(row.id, " ".join(search_words(indexed_text(name, row.section, row.text)))) for row in rows]
        insert_words("chunk_words", "chunk_id", words, "english")


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
    all_marks = frozenset(marks())
    said = sa.text(
        f"SELECT messages.turn_id, content FROM messages JOIN turn_words ON turn_words.{key} = messages.turn_id "
        "WHERE role IN ('user', 'assistant') AND content IS NOT NULL ORDER BY messages.turn_id, position"
    )
    rows = []
    for turn_id, messages in groupby(connection.execute(said), key=lambda row: row.turn_id):
        text = "\n".join(row.content for row in messages)[:MAX_INDEXED_CHARS]
        if not text.isascii() and not all_marks.isdisjoint(text):
            rows.append((turn_id, " ".join(search_words(text))))
    for one, _ in rows:
        connection.execute(sa.text(f"DELETE FROM turn_words WHERE {key} = :turn"), {"turn": one})
    insert_words("turn_words", "turn_id", rows, "english")


def downgrade() -> None:
    op.drop_index("ix_chunks_language", "chunks")
    renew_index("chunk_words", "porter unicode61 remove_diacritics 2")
    index_chunks_as_before()
    op.drop_column("chunks", "language")
