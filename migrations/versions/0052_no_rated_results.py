"""Rated questions are no longer asked again; ratings stay."""

revision = "0052"
down_revision = "0051"

from alembic import op


def upgrade() -> None:
    op.drop_column("ratings", "result")
