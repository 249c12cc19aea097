"""People with their sessions, tokens and links, what happened to accounts, libraries, and whose everything is."""

revision = "0012"
down_revision = "0011"

import sqlalchemy as sa
from alembic import op

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("name_key", sa.String, nullable=False, unique=True),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("password_hash", sa.String),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("disabled_at", MOMENT),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer, primary_key=True),
        *_credential(),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("browser", sa.String, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sessions_person", "sessions", ["person_id"])
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        *_credential(expires=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("prefix", sa.String, nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_tokens_person", "api_tokens", ["person_id"])
    op.create_table(
        "password_links",
        sa.Column("secret_hash", sa.String, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
    )
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("address", sa.String),
        sqlite_autoincrement=True,
    )
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
        "library_shares",
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("access", sa.String, nullable=False),
    )
    op.create_index("ix_library_shares_person", "library_shares", ["person_id"])
    op.create_table(
        "conversation_links",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("secret_hash", sa.String, nullable=False, unique=True),
        sa.Column("with_sources", sa.Boolean, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_conversation_links_conversation", "conversation_links", ["conversation_id"])
    op.add_column("conversations", sa.Column("person_id", sa.Integer))
    op.create_index(
        "ix_conversations_person", "conversations", ["person_id", "deleted_at", "updated_at", "id"]
    )
    name_the_library()


def _credential(*, expires: bool = True) -> list[sa.Column]:
    """Return the columns of what somebody shows to be known again: only its hash is kept."""
    return [
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("secret_hash", sa.String, nullable=False, unique=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("used_at", MOMENT),
        sa.Column("expires_at", MOMENT, nullable=not expires),
    ]


def name_the_library() -> None:
    """Put all documents into one library, and let the same content be in another one once more."""
    op.execute("INSERT INTO libraries (name) VALUES ('Documents')")
    op.add_column("documents", sa.Column("library_id", sa.Integer))
    # The column that may hold each value once cannot be dropped in SQLite without making the table anew.
    op.execute("ALTER TABLE documents RENAME COLUMN sha256 TO content_key")
    op.add_column("documents", sa.Column("sha256", sa.String, nullable=False, server_default=""))
    op.execute("UPDATE documents SET sha256 = content_key, library_id = 1, content_key = '1 ' || content_key")
    op.create_index("ix_documents_library", "documents", ["library_id", "id"])


def downgrade() -> None:
    op.drop_index("ix_documents_library", "documents")
    op.drop_column("documents", "sha256")
    op.execute("UPDATE documents SET content_key = substr(content_key, length(CAST(library_id AS TEXT)) + 2)")
    op.execute("ALTER TABLE documents RENAME COLUMN content_key TO sha256")
    op.drop_index("ix_conversations_person", "conversations")
    op.drop_column("documents", "library_id")
    op.drop_column("conversations", "person_id")
    for name in ("conversation_links", "library_shares", "libraries", "audit_log", "password_links", "api_tokens", "sessions", "people"):
        op.drop_table(name)
