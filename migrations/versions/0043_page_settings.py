"""Servers that share a database share what is changed on the settings page."""

revision = "0043"
down_revision = "0042"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "page_settings",
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("settings", sa.JSON, nullable=False),
    )
