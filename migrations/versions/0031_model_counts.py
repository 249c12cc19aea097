"""How each model counts tokens, and the most that it takes, so that a restart remembers it."""

revision = "0031"
down_revision = "0030"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "model_counts",
        sa.Column("base_url", sa.String, primary_key=True),
        sa.Column("model", sa.String, primary_key=True),
        sa.Column("ratio", sa.Float),
        sa.Column("context_limit", sa.Integer),
        sa.Column("declared_limit", sa.Integer),
        sa.Column("whole_counts", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("model_counts")
