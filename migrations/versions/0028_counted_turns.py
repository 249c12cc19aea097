"""How many messages a model may see is counted from an index alone."""

revision = "0028"
down_revision = "0027"

import sqlalchemy as sa
from alembic import op

COLUMNS = ["conversation_id", "number"]


def upgrade() -> None:
    _index([*COLUMNS, "message_count"])


def downgrade() -> None:
    _index(COLUMNS)


def _index(columns: list[str]) -> None:
    op.drop_index("ix_turns_visible", "turns")
    op.create_index(
        "ix_turns_visible",
        "turns",
        columns,
        sqlite_where=sa.text("visible = 1"),
        postgresql_where=sa.text("visible"),
    )
