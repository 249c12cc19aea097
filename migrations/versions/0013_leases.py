"""Who is alive: answers, documents and summaries at work belong to a process, and to another one when it dies."""

revision = "0013"
down_revision = "0012"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "processes",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("installation", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("beats", sa.Integer, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
    )
    op.add_column("documents", sa.Column("worker", sa.String))
    op.add_column("turns", sa.Column("stop_requested", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("conversations", sa.Column("operation_owner", sa.String))


def downgrade() -> None:
    op.drop_column("conversations", "operation_owner")
    op.drop_column("turns", "stop_requested")
    op.drop_column("documents", "worker")
    op.drop_table("processes")
