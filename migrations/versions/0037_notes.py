"""Notes that people asked to be remembered."""

revision = "0037"
down_revision = "0036"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.Integer),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id", ondelete="CASCADE")),
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE")),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("superseded_by", sa.Integer),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notes_person", "notes", ["person_id", "active"])
    op.create_index("ix_notes_turn", "notes", ["turn_id"])
    op.create_index("ix_notes_project", "notes", ["project_id"])


def downgrade() -> None:
    op.drop_table("notes")
