"""Projects, the conversations in them, and which conversations have an answer that nobody has seen."""

revision = "0035"
down_revision = "0034"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("everyone", sa.String),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("overrides", sa.JSON, nullable=False),
        sa.Column("scope", sa.JSON),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_projects_person", "projects", ["person_id"])
    op.create_table(
        "project_shares",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("access", sa.String, nullable=False),
    )
    op.create_index("ix_project_shares_person", "project_shares", ["person_id"])
    op.add_column("conversations", sa.Column("project_id", sa.Integer))
    in_one = sa.text("project_id IS NOT NULL")
    columns = ["project_id", "deleted_at", "updated_at", "id"]
    op.create_index("ix_conversations_project", "conversations", columns, sqlite_where=in_one, postgresql_where=in_one)
    op.add_column("conversations", sa.Column("unread", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("conversations", "unread")
    op.drop_index("ix_conversations_project", "conversations")
    op.drop_column("conversations", "project_id")
    op.drop_table("project_shares")
    op.drop_table("projects")
