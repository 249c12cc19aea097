"""The ids that newer versions of documents had, so that these still answer."""

revision = "0033"
down_revision = "0032"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "former_ids",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    )
    op.create_index("ix_former_ids_document", "former_ids", ["document_id"])


def downgrade() -> None:
    op.drop_table("former_ids")
