"""Tokens that models took within the last day, by whom, so that a day can have a limit."""

revision = "0015"
down_revision = "0014"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "model_tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_model_tokens_at", "model_tokens", ["at", "person_id", "tokens"])


def downgrade() -> None:
    op.drop_table("model_tokens")
