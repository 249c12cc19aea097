"""Files that are still to be deleted where they lie."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "deleted_files",
        sa.Column("file", sa.String, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("deleted_files")
