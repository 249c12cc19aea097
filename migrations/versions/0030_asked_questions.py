"""What people asked within the last minute, and what is being answered for them, by whichever server."""

revision = "0030"
down_revision = "0029"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "asked_questions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("person_id", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("owner", sa.String),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_asked_questions_person", "asked_questions", ["person_id", "at"])


def downgrade() -> None:
    op.drop_table("asked_questions")
