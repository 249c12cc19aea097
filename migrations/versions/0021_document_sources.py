"""Where documents come from by themselves, and what came of looking through it."""

revision = "0021"
down_revision = "0018"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "document_sources",
        sa.Column("address", sa.String(), primary_key=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True)),
        sa.Column("checked_at", sa.DateTime(timezone=True)),
        sa.Column("files", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("refused", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("problem", sa.Text()),
    )


def downgrade() -> None:
    op.drop_table("document_sources")
