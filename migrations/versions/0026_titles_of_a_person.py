"""The titles of one person's conversations are read from an index alone, as those of all are."""

revision = "0026"
down_revision = "0025"

from alembic import op

COLUMNS = ["person_id", "deleted_at", "updated_at", "id"]


def upgrade() -> None:
    op.drop_index("ix_conversations_person", "conversations")
    op.create_index("ix_conversations_person", "conversations", [*COLUMNS, "title"])


def downgrade() -> None:
    op.drop_index("ix_conversations_person", "conversations")
    op.create_index("ix_conversations_person", "conversations", COLUMNS)
