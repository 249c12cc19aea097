"""Receipts and sources refer to texts that are kept once. What was kept before stays as it is, and is read as it is.

It is not rewritten: a receipt is a record, and SQLite would give the room back only after a VACUUM.
"""

revision = "0009"
down_revision = "0008"

import sqlalchemy as sa
from alembic import op

OF_DOCUMENTS = sa.text("document_id IS NOT NULL")
NOT_THE_FIRST = sa.text("version > 1")


def upgrade() -> None:
    op.create_table(
        "sent_texts",
        sa.Column(
            "conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("text", sa.Text),
        sa.Column("document_id", sa.Integer),
        sa.Column("start", sa.Integer),
        sa.Column("end", sa.Integer),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_sent_texts_document",
        "sent_texts",
        ["document_id"],
        sqlite_where=OF_DOCUMENTS,
        postgresql_where=OF_DOCUMENTS,
    )
    op.create_index("ix_chunks_start", "chunks", ["document_id", "start"])
    op.create_index(
        "ix_turns_versions",
        "turns",
        ["conversation_id", "number"],
        sqlite_where=NOT_THE_FIRST,
        postgresql_where=NOT_THE_FIRST,
    )


def downgrade() -> None:
    op.drop_index("ix_turns_versions", "turns")
    op.drop_index("ix_chunks_start", "chunks")
    op.drop_table("sent_texts")
