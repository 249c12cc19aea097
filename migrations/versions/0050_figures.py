"""Which pages of a document have a figure is stored with it; for one that was read before, nothing is known."""

revision = "0050"
down_revision = "0049"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("documents", sa.Column("figures", sa.JSON))
