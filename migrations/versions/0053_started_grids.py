"""Tables over documents watch from when they are started on; those from before have been."""

revision = "0053"
down_revision = "0052"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("grids", sa.Column("started", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute(sa.update(sa.table("grids", sa.column("started", sa.Boolean))).values(started=True))
