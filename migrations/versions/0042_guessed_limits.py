"""Context limits guessed from low counts are forgotten; an endpoint's own figures are asked for again."""

revision = "0042"
down_revision = "0041"

from alembic import op


def upgrade() -> None:
    op.execute("UPDATE model_counts SET context_limit = NULL")
