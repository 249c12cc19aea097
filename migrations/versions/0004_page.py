"""Conversations: pinned, about some documents only, branched off another. Answers: kept when one is given anew."""

revision = "0004"
down_revision = "0003"

import sqlalchemy as sa
from alembic import op


BRANCHED = sa.text("branched_from IS NOT NULL")


def upgrade() -> None:
    op.add_column("conversations", sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()))
    for name in ("scope", "branched_from", "doing"):
        op.add_column("conversations", sa.Column(name, sa.JSON(none_as_null=True)))
    op.create_index(
        "ix_conversations_branches", "conversations", ["id"], sqlite_where=BRANCHED, postgresql_where=BRANCHED
    )
    for name in ("version", "versions"):
        op.add_column("turns", sa.Column(name, sa.Integer, nullable=False, server_default="1"))
    op.create_table(
        "answer_versions",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("messages", sa.JSON, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("receipt", sa.JSON(none_as_null=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("answer_versions")
    for name in ("versions", "version"):
        op.drop_column("turns", name)
    op.drop_index("ix_conversations_branches", "conversations")
    for name in ("doing", "branched_from", "scope", "pinned"):
        op.drop_column("conversations", name)
