"""Conversations can be archived."""

revision = "0038"
down_revision = "0037"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("conversations", sa.Column("archived", sa.Boolean, nullable=False, server_default=sa.false()))
