"""Conversations: pinned, about some documents only, branched off another; what is being done with one."""

revision = "0004"
down_revision = "0003"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("conversations", sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()))
    for name in ("scope", "branched_from", "doing"):
        op.add_column("conversations", sa.Column(name, sa.JSON(none_as_null=True)))


def downgrade() -> None:
    for name in ("doing", "branched_from", "scope", "pinned"):
        op.drop_column("conversations", name)
