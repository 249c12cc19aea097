"""Ratings of answers, each with the answer that would be right and what the last evaluation gave."""

revision = "0007"
down_revision = "0006"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "ratings",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("rating", sa.String, nullable=False),
        sa.Column("right_answer", sa.Text),
        sa.Column("rated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True)),
    )


def downgrade() -> None:
    op.drop_table("ratings")
