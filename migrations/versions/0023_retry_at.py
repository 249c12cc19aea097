"""When a failed endpoint asked to be asked again, so that whoever comes late is told, too."""

revision = "0023"
down_revision = "0022"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("turns", sa.Column("retry_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("turns", "retry_at")
