"""The tables as they are in version 1.0."""

revision = "0037"
down_revision = None

import sqlalchemy as sa
from alembic import op

TIME = sa.DateTime(timezone=True)
TOKENIZER = "porter unicode61 remove_diacritics 2 categories ''L* N* Co M*''"


def upgrade() -> None:
    create_tables()
    op.execute("INSERT INTO libraries (name) VALUES ('Documents')")
    if op.get_bind().dialect.name == "sqlite":
        index_words_on_sqlite()
    else:
        index_words_on_postgresql()


def index_words_on_sqlite() -> None:
    """Store the words of chunks in a plain table, and those of turns in FTS5."""
    op.execute("CREATE TABLE chunk_words (chunk_id INTEGER PRIMARY KEY, words TEXT NOT NULL)")
    op.execute(f"CREATE VIRTUAL TABLE turn_words USING fts5(words, tokenize = '{TOKENIZER}')")
    version = str(op.get_bind().exec_driver_sql("SELECT sqlite_version()").scalar())
    if tuple(map(int, version.split("."))) >= (3, 42):
        # Deleted words are removed from the index at once, not only marked.
        op.execute("INSERT INTO turn_words (turn_words, rank) VALUES ('secure-delete', 1)")


def index_words_on_postgresql() -> None:
    """Store words for full text search, with their number, which ranking would otherwise count in each search."""
    op.execute(
        "CREATE FUNCTION count_words(tsvector) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
        "AS 'SELECT coalesce(sum(cardinality(positions)), 0)::integer FROM unnest($1)'"
    )
    for name, key, rows in (("chunk_words", "chunk_id", "chunks"), ("turn_words", "turn_id", "turns")):
        op.execute(
            f"CREATE TABLE {name} ({key} INTEGER PRIMARY KEY REFERENCES {rows}(id) ON DELETE CASCADE, "
            "words TSVECTOR NOT NULL, length INTEGER GENERATED ALWAYS AS (count_words(words)) STORED)"
        )
        op.execute(f"CREATE INDEX ix_{name} ON {name} USING gin(words)")


def partial_index(name: str, table: str, columns: list[str], where: str, unique: bool = False) -> None:
    """Index the rows that meet a condition. SQLite uses a Boolean column's index only for the same expression."""
    on_sqlite = f"{where} = 1" if name in ("ix_turns_visible", "ix_conversations_pinned") else where
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=sa.text(on_sqlite), postgresql_where=sa.text(where)
    )


def create_tables() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("address", sa.String),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "conversations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("deleted_at", TIME),
        sa.Column("person_id", sa.Integer),
        sa.Column("overrides", sa.JSON, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("visible_turns", sa.Integer, nullable=False),
        sa.Column("visible_messages", sa.Integer, nullable=False),
        sa.Column("user_messages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("assistant_messages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("tool_messages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("changes", sa.Integer, nullable=False, server_default="0"),
        sa.Column("context_start", sa.Integer, nullable=False, server_default="1"),
        sa.Column("view_start", sa.Integer, nullable=False, server_default="1"),
        sa.Column("summary_id", sa.Integer),
        sa.Column("decided_until", sa.Integer, nullable=False, server_default="0"),
        sa.Column("held_turns", sa.Integer, nullable=False, server_default="0"),
        sa.Column("standing_runs", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("scope", sa.JSON(none_as_null=True)),
        sa.Column("branched_from", sa.JSON(none_as_null=True)),
        sa.Column("origin_id", sa.Integer),
        sa.Column("operation", sa.JSON(none_as_null=True)),
        sa.Column("operation_owner", sa.String),
        sa.Column("listed", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("project_id", sa.Integer),
        sa.Column("unread", sa.Boolean, nullable=False, server_default=sa.false()),
        sqlite_autoincrement=True,
    )
    partial_index("ix_conversations_branches", "conversations", ["origin_id", "id"], "origin_id IS NOT NULL")
    op.create_index("ix_conversations_latest", "conversations", ["deleted_at", "updated_at", "id", "title"])
    op.create_index("ix_conversations_listed", "conversations", ["listed", "deleted_at", "updated_at", "id"])
    op.create_index(
        "ix_conversations_person", "conversations", ["person_id", "deleted_at", "updated_at", "id", "title"]
    )
    partial_index("ix_conversations_pinned", "conversations", ["deleted_at", "updated_at", "id"], "pinned")
    op.create_table(
        "deleted_files",
        sa.Column("file", sa.String, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
    )
    op.create_table(
        "document_sources",
        sa.Column("address", sa.String, primary_key=True),
        sa.Column("claimed_at", TIME),
        sa.Column("checked_at", TIME),
        sa.Column("files", sa.Integer, nullable=False, server_default="0"),
        sa.Column("refused", sa.Integer, nullable=False, server_default="0"),
        sa.Column("problem", sa.Text),
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("name_key", sa.String, nullable=False, server_default=""),
        sa.Column("media_type", sa.String, nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("content_key", sa.String, nullable=False, unique=True),
        sa.Column("sha256", sa.String, nullable=False, server_default=""),
        sa.Column("library_id", sa.Integer),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("file", sa.String, nullable=False),
        sa.Column("worker", sa.String),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.Column("embedded", sa.Integer, nullable=False),
        sa.Column("page_starts", sa.JSON),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("origin", sa.Text),
        sa.Column("replaces", sa.Integer),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("scanned_pages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("recognised_pages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("deleted_at", TIME),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_documents_library", "documents", ["library_id", "id"])
    op.create_index("ix_documents_name", "documents", ["name_key", "id"])
    op.create_index("ix_documents_origin", "documents", ["origin"])
    partial_index("ix_documents_replaces", "documents", ["replaces"], "replaces IS NOT NULL")
    op.create_index("ix_documents_size", "documents", ["size_bytes", "id"])
    op.create_index("ix_documents_state", "documents", ["state", "id", "size_bytes"])
    op.create_table(
        "embedders",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("source", sa.JSON, nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("probe", sa.LargeBinary),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("additions", sa.Integer, nullable=False),
        sa.Column("deletions", sa.Integer, nullable=False),
    )
    op.create_table(
        "model_tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer),
        sa.Column("at", TIME, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_model_tokens_at", "model_tokens", ["at", "person_id", "tokens"])
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("name_key", sa.String, nullable=False, unique=True),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("password_hash", sa.String),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("disabled_at", TIME),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "processes",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("installation", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("beats", sa.Integer, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
    )
    op.create_table(
        "word_changes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("first_chunk", sa.Integer, nullable=False),
        sa.Column("last_chunk", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("secret_hash", sa.String, nullable=False, unique=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.Column("expires_at", TIME),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("prefix", sa.String, nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_tokens_person", "api_tokens", ["person_id"])
    op.create_table(
        "chunks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("page", sa.Integer),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("section", sa.Text),
        sa.Column("gap", sa.Text),
        sa.Column("language", sa.String, nullable=False, server_default=""),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_chunks_document", "chunks", ["document_id", "position"])
    op.create_index("ix_chunks_language", "chunks", ["language"])
    op.create_index("ix_chunks_start", "chunks", ["document_id", "start"])
    op.create_table(
        "conversation_links",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("secret_hash", sa.String, nullable=False, unique=True),
        sa.Column("with_sources", sa.Boolean, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_conversation_links_conversation", "conversation_links", ["conversation_id"])
    op.create_table(
        "document_tags",
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("tag", sa.String, primary_key=True),
    )
    op.create_index("ix_document_tags_tag", "document_tags", ["tag", "document_id"])
    op.create_table(
        "document_texts",
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("markdown", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("warning", sa.Text),
    )
    op.create_table(
        "history_changes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("before", sa.JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_history_changes_conversation", "history_changes", ["conversation_id", "id"])
    op.create_table(
        "libraries",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("everyone", sa.String),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_libraries_person", "libraries", ["person_id"])
    op.create_table(
        "linked_identities",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("issuer", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("label", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.UniqueConstraint("issuer", "subject"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_linked_identities_person", "linked_identities", ["person_id"])
    op.create_table(
        "password_links",
        sa.Column("secret_hash", sa.String, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
    )
    op.create_table(
        "scanned_pages",
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("page", sa.Integer, primary_key=True),
        sa.Column("lines", sa.JSON(none_as_null=True)),
        sa.Column("problem", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sent_turns",
        sa.Column(
            "conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("magnitude", sa.Integer, primary_key=True),
        sa.Column("first_turn", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("last_turn", sa.Integer, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("secret_hash", sa.String, nullable=False, unique=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("browser", sa.String, nullable=False),
        sa.Column("identity_id", sa.Integer),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sessions_person", "sessions", ["person_id"])
    op.create_table(
        "summaries",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("first_turn", sa.Integer, nullable=False),
        sa.Column("last_turn", sa.Integer, nullable=False),
        sa.Column("covered", sa.JSON, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("written_by", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_summaries_conversation", "summaries", ["conversation_id", "id"])
    op.create_table(
        "turns",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("visible", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("stop_requested", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("idempotency_key", sa.String, unique=True),
        sa.Column("request_hash", sa.String),
        sa.Column("history", sa.JSON),
        sa.Column("sources", sa.LargeBinary),
        sa.Column("usage", sa.JSON),
        sa.Column("model", sa.String),
        sa.Column("error_type", sa.String),
        sa.Column("error_message", sa.Text),
        sa.Column("retry_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("excluded", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("purged", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("waiting", sa.JSON(none_as_null=True)),
        sa.Column("message_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("search", sa.JSON(none_as_null=True)),
        sa.Column("notes", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("version", sa.Integer, nullable=False, server_default="1"),
        sa.Column("versions", sa.Integer, nullable=False, server_default="1"),
        sa.Column("erased_at", TIME),
        sa.Column("origin_id", sa.Integer),
        sa.UniqueConstraint("conversation_id", "number", name="uq_turns_number"),
        sqlite_autoincrement=True,
    )
    partial_index("ix_turns_held", "turns", ["conversation_id", "number"], "held")
    partial_index("ix_turns_hidden", "turns", ["conversation_id", "number"], "NOT visible")
    partial_index("ix_turns_marked", "turns", ["conversation_id", "number"], "pinned OR waiting IS NOT NULL")
    partial_index("ix_turns_origin", "turns", ["origin_id"], "origin_id IS NOT NULL")
    partial_index("ix_turns_versions", "turns", ["conversation_id", "number"], "version > 1")
    partial_index("ix_turns_visible", "turns", ["conversation_id", "number", "message_count"], "visible")
    partial_index("uq_turns_running", "turns", ["conversation_id"], "status = 'running'", unique=True)
    op.create_table(
        "answer_parts",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "answer_versions",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("messages", sa.JSON, nullable=False),
        sa.Column("figures", sa.LargeBinary, nullable=False),
        sa.Column("receipt", sa.LargeBinary),
        sa.Column("finished_at", TIME),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "embeddings",
        sa.Column("chunk_id", sa.Integer, sa.ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("embedder", sa.String, primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "library_shares",
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("access", sa.String, nullable=False),
    )
    op.create_index("ix_library_shares_person", "library_shares", ["person_id"])
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
        "pictures",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
    )
    op.create_index("ix_pictures_key", "pictures", ["key"])
    op.create_table(
        "ratings",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("rating", sa.String, nullable=False),
        sa.Column("right_answer", sa.Text),
        sa.Column("rated_at", TIME, nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "receipts",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "asked_questions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("person_id", sa.Integer, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("owner", sa.String),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_asked_questions_person", "asked_questions", ["person_id", "at"])
    op.create_table(
        "model_counts",
        sa.Column("base_url", sa.String, primary_key=True),
        sa.Column("model", sa.String, primary_key=True),
        sa.Column("ratio", sa.Float),
        sa.Column("context_limit", sa.Integer),
        sa.Column("declared_limit", sa.Integer),
        sa.Column("whole_counts", sa.Integer, nullable=False),
    )
    partial_index("ix_documents_deleted", "documents", ["deleted_at", "id"], "deleted_at IS NOT NULL")
    op.create_table(
        "former_ids",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    )
    op.create_index("ix_former_ids_document", "former_ids", ["document_id"])
    op.create_table(
        "receipt_links",
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("previous", sa.String, nullable=False),
        sa.Column("parts", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.String, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ux_receipt_links_turn", "receipt_links", ["turn_id", "version"], unique=True)
    op.create_table(
        "projects",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("everyone", sa.String),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("overrides", sa.JSON, nullable=False),
        sa.Column("scope", sa.JSON),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_projects_person", "projects", ["person_id"])
    op.create_table(
        "project_shares",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("access", sa.String, nullable=False),
    )
    op.create_index("ix_project_shares_person", "project_shares", ["person_id"])
    columns = ["project_id", "deleted_at", "updated_at", "id"]
    partial_index("ix_conversations_project", "conversations", columns, "project_id IS NOT NULL")
    op.create_table(
        "sent_elsewhere",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("receipt_turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sent_elsewhere_receipt", "sent_elsewhere", ["receipt_turn_id"])
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id", ondelete="CASCADE")),
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE")),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("superseded_by", sa.Integer),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notes_person", "notes", ["person_id", "active"])
    op.create_index("ix_notes_turn", "notes", ["turn_id"])
    op.create_index("ix_notes_project", "notes", ["project_id"])
