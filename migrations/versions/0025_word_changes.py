"""What changes of the words of chunks is noted, so that an index in memory need not read all of them again."""

revision = "0025"
down_revision = "0024"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "word_changes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("first_chunk", sa.Integer, nullable=False),
        sa.Column("last_chunk", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("word_changes")
