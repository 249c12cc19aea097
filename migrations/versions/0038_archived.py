"""Conversations can be archived, and notes proposed."""

revision = "0038"
down_revision = "0037"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("conversations", sa.Column("archived", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("notes", sa.Column("proposed", sa.Boolean, nullable=False, server_default=sa.false()))
