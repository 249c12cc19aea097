"""The first schema."""

revision = "0001"
down_revision = None

import sqlalchemy as sa
from alembic import op

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("deleted_at", TIME),
        sa.Column("overrides", sa.JSON, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("visible_turns", sa.Integer, nullable=False),
        sa.Column("visible_messages", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_conversations_latest", "conversations", ["deleted_at", "updated_at", "id"])
    op.create_table(
        "turns",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("visible", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("idempotency_key", sa.String, unique=True),
        sa.Column("request_hash", sa.String),
        sa.Column("history", sa.JSON),
        sa.Column("sources", sa.JSON),
        sa.Column("usage", sa.JSON),
        sa.Column("model", sa.String),
        sa.Column("error_type", sa.String),
        sa.Column("error_message", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.UniqueConstraint("conversation_id", "number", name="uq_turns_number"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_turns_visible",
        "turns",
        ["conversation_id", "number"],
        sqlite_where=sa.text("visible = 1"),
        postgresql_where=sa.text("visible"),
    )
    op.create_index(
        "uq_turns_running",
        "turns",
        ["conversation_id"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_table(
        "messages",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("content", sa.Text),
        sa.Column("extra", sa.JSON),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "answer_parts",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "receipts",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("media_type", sa.String, nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String, nullable=False, unique=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("file", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.Column("embedded", sa.Integer, nullable=False),
        sa.Column("page_starts", sa.JSON),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_documents_state", "documents", ["state", "id"])
    op.create_table(
        "document_texts",
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "chunks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("page", sa.Integer),
        sa.Column("text", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_chunks_document", "chunks", ["document_id", "position"])
    op.create_table(
        "embeddings",
        sa.Column("chunk_id", sa.Integer, sa.ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("embedder", sa.String, primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    state = op.create_table(
        "library_state",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("additions", sa.Integer, nullable=False),
        sa.Column("deletions", sa.Integer, nullable=False),
    )
    op.bulk_insert(state, [{"id": 1, "additions": 0, "deletions": 0}])

    # The words of each chunk, prepared for search: SQLite's FTS5, PostgreSQL's full text.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE chunk_words USING fts5(words, tokenize = 'porter unicode61 remove_diacritics 2')")
    else:
        op.execute(
            "CREATE TABLE chunk_words (chunk_id INTEGER PRIMARY KEY REFERENCES chunks(id) ON DELETE CASCADE, "
            "words TSVECTOR NOT NULL)"
        )
        op.execute("CREATE INDEX ix_chunk_words ON chunk_words USING gin(words)")


def downgrade() -> None:
    for table in (
        "chunk_words", "library_state", "embeddings", "chunks", "document_texts", "documents",
        "receipts", "answer_parts", "messages", "turns", "conversations",
    ):  # fmt: skip
        op.drop_table(table)
